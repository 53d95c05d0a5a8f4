//! Tokens of a running server, as an operator writes them into its file.

use serde_json::{Value, json};

/// A token: its secret and its entry.
#[derive(Clone, Debug)]
pub struct Token {
    /// What a client shows.
    pub secret: String,
    /// What stands in the token file.
    pub entry: Value,
}

impl Token {
    /// With these keys. Those that say nothing of tools and clusters get all reads, everywhere.
    pub fn new(name: &str, keys: &Value) -> Self {
        let (secret, hash) = pvegate::tokens::generate().unwrap();
        let mut entry = json!({"name": name, "hash": hash, "tools": ["*"], "clusters": ["*"]});
        for (key, value) in keys.as_object().unwrap() {
            entry[key] = value.clone();
        }
        Self { secret: secret.expose().to_owned(), entry }
    }
}
