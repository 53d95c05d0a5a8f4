//! What a change is: who wants which steps, under which id.

use std::fmt;
use std::str::FromStr;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::event::Happened;
use super::state::State;
use super::time;

const PREFIX: &str = "chg_";
/// Crockford's digits: none is taken for another.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const LENGTH: usize = 26;

/// Names a change: 48 bits of time, so that newer ones sort after older ones, and 80 random bits, so that none is guessed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ChangeId(String);

/// A text that is no id of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a change_id is `chg_` and {LENGTH} lower-case letters and digits, as answers give it")]
pub struct NoChangeId;

impl ChangeId {
    /// A new one.
    pub(super) fn new(now: SystemTime) -> Result<Self, getrandom::Error> {
        let mut random = [0_u8; 16];
        getrandom::fill(&mut random)?;
        let time = u128::try_from(time::millis(now)).unwrap_or_default();
        Ok(Self::from_bits(time << 80 | u128::from_be_bytes(random) >> 48))
    }

    fn from_bits(bits: u128) -> Self {
        let digit = |at: usize| {
            let value = usize::try_from(bits >> (5 * (LENGTH - 1 - at)) & 31).unwrap_or_default();
            char::from(DIGITS.get(value).copied().unwrap_or_default())
        };
        Self(PREFIX.chars().chain((0..LENGTH).map(digit)).collect())
    }

    /// Reads one as it is written, and in no other spelling.
    pub fn parse(text: &str) -> Result<Self, NoChangeId> {
        let digits = text.strip_prefix(PREFIX).ok_or(NoChangeId)?;
        // 26 digits have two bits more than the number.
        let fits = digits.len() == LENGTH && digits.as_bytes().first().is_some_and(|first| *first <= b'7');
        if fits && digits.bytes().all(|digit| DIGITS.contains(&digit)) {
            Ok(Self(text.to_owned()))
        } else {
            Err(NoChangeId)
        }
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ChangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ChangeId {
    type Err = NoChangeId;

    fn from_str(text: &str) -> Result<Self, NoChangeId> {
        Self::parse(text)
    }
}

impl TryFrom<String> for ChangeId {
    type Error = NoChangeId;

    fn try_from(text: String) -> Result<Self, NoChangeId> {
        Self::parse(&text)
    }
}

impl From<ChangeId> for String {
    fn from(id: ChangeId) -> Self {
        id.0
    }
}

/// What is wanted, by whom. No secret is ever in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewChange {
    /// The name of the token that asks.
    pub principal: String,
    /// The person whose token it is, or who answers for the agent.
    pub person_or_owner: Option<String>,
    /// On which cluster, by the name that callers use.
    pub cluster: String,
    /// Which cluster that was.
    pub cluster_identity: Option<String>,
    /// What is done, in this order.
    pub steps: Vec<Step>,
    /// Why, in the caller's words.
    pub reason: Option<String>,
    /// The caller's name for this wish: the same key is never done twice.
    pub idempotency_key: Option<String>,
    /// A digest over operation and arguments, which tells whether a key came with the same wish.
    pub request_fingerprint: String,
    /// Whether policy approves it, so that no person is needed.
    pub approved_by_policy: bool,
}

/// One operation of a change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The operation, as the catalog names it.
    pub operation: String,
    /// Its arguments, without secrets.
    pub arguments: Json,
    /// What it was resolved to.
    pub target: Option<Json>,
}

/// A change and everything that happened to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Its id.
    pub id: ChangeId,
    /// What is wanted, by whom.
    pub new: NewChange,
    /// What happened, in order.
    pub events: Vec<Happened>,
    /// What that comes to.
    pub state: State,
    /// When it was recorded, by the store's clock.
    pub created_at: SystemTime,
}

/// What a wish to begin a change came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// It is recorded.
    New(ChangeId),
    /// This principal's key stands for the same wish already: that change is the answer, whatever became of it.
    Same(ChangeId),
    /// This principal's key stands for another wish already. Nothing is recorded.
    OtherArguments(ChangeId),
}

/// Which changes are listed, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Those of this principal alone.
    pub principal: Option<String>,
    /// Those that are older than this one.
    pub before: Option<ChangeId>,
    /// At most this many.
    pub limit: u32,
}
