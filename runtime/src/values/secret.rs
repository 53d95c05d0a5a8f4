//! Decides that a secret is never printed: it has no text form, and its memory is cleared.

use std::fmt;
use zeroize::Zeroizing;

/// A password, key or token. It cannot be printed, serialized or compared in the ordinary way.
///
/// ```compile_fail,E0277
/// println!("{}", pvegate::values::Secret::new(String::new()));
/// ```
///
/// ```compile_fail,E0277
/// serde_json::to_string(&pvegate::values::Secret::new(String::new()));
/// ```
///
/// ```compile_fail,E0369
/// let _ = pvegate::values::Secret::new(String::new()) == pvegate::values::Secret::new(String::new());
/// ```
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes the text over.
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The text, for the one place that has to send it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}
