//! Values for fields that hold secrets: recognizable, so that a test can look for them where they must not be.

/// Makes secrets from a base text.
#[derive(Clone, Debug)]
pub(crate) struct Secrets {
    base: String,
}

impl Secrets {
    /// With a canary every secret contains it; without, secrets are dull.
    pub(crate) fn new(canary: Option<&str>) -> Self {
        Self { base: canary.unwrap_or("lab-secret").to_owned() }
    }

    /// The secret of a purpose.
    pub(crate) fn of(&self, purpose: &str) -> String {
        format!("{}-{purpose}", self.base)
    }

    /// A URL with a password in it.
    pub(crate) fn url(&self, purpose: &str, host: &str) -> String {
        format!("https://svc:{}@{host}/", self.of(purpose))
    }

    /// Whether a text contains a secret.
    pub(crate) fn within(&self, text: &str) -> bool {
        text.contains(&self.base)
    }
}
