//! Decides what names a user (`name@realm`) or an API token (`name@realm!token`).

use super::{ValueError, text_traits, text_value};

fn is_word(text: &str) -> bool {
    text.len() >= 2
        && text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
        && !text.contains("..")
}

fn is_user(text: &str) -> bool {
    let Some((name, realm)) = text.rsplit_once('@') else { return false };
    text.len() <= 64
        && !name.is_empty()
        && !matches!(name, "." | "..")
        // `!` begins a token's name, so a user with one could not be told from a token.
        && !name.chars().any(|character| {
            matches!(character, ':' | '/' | '\\' | '%' | '?' | '#' | '!') || character.is_whitespace() || character.is_control()
        })
        && realm.len() <= 32
        && is_word(realm)
}

text_value!(
    /// A user with its realm.
    UserId,
    "a user",
    "`name@realm` of at most 64 characters, without blanks and `:`, `/`, `%`, `!`",
    is_user
);

/// An API token with its user.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenId {
    text: Box<str>,
    user_end: usize,
}

impl TokenId {
    /// Reads `user@realm!token`.
    pub fn parse(text: &str) -> Result<Self, ValueError> {
        let parts = text.split_once('!').filter(|(user, token)| is_user(user) && token.len() <= 64 && is_word(token));
        match parts {
            Some((user, _)) => Ok(Self { text: text.into(), user_end: user.len() }),
            None => Err(ValueError::new(
                "an API token id",
                text,
                "`user@realm!token`, the token a letter and then letters, digits, `.`, `-` and `_`",
            )),
        }
    }

    /// The text as it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// `user@realm`.
    pub fn user(&self) -> &str {
        self.text.get(..self.user_end).unwrap_or_default()
    }

    /// The part after `!`.
    pub fn token(&self) -> &str {
        self.text.get(self.user_end + 1..).unwrap_or_default()
    }
}

text_traits!(TokenId);
