//! Decides what a guest's number is: 100 to 999999999, written without leading zeros.

use super::ValueError;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::str::FromStr;

/// A guest's number, the same for virtual machines and containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Vmid(u32);

impl Vmid {
    const WHAT: &'static str = "a guest number (vmid)";
    const EXPECTED: &'static str = "a whole number from 100 to 999999999 without leading zeros";

    /// Reads decimal digits.
    pub fn parse(text: &str) -> Result<Self, ValueError> {
        let refused = || ValueError::new(Self::WHAT, text, Self::EXPECTED);
        // `parse` on integers takes a plus sign and leading zeros, PVE does not.
        if text.len() > 9 || text.starts_with('0') || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(refused());
        }
        text.parse().ok().and_then(Self::new).ok_or_else(refused)
    }

    /// A number inside the range.
    pub fn new(number: u32) -> Option<Self> {
        (100..=999_999_999).contains(&number).then_some(Self(number))
    }

    /// A JSON number inside the range.
    pub fn from_number(number: u64) -> Result<Self, ValueError> {
        u32::try_from(number)
            .ok()
            .and_then(Self::new)
            .ok_or_else(|| ValueError::new(Self::WHAT, &number.to_string(), Self::EXPECTED))
    }

    /// The number.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Vmid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Vmid {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

/// PVE answers with numbers or with strings, so both are read.
impl<'de> Deserialize<'de> for Vmid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Number(u64),
            Text(String),
        }
        match Either::deserialize(deserializer)? {
            Either::Number(number) => Self::from_number(number),
            Either::Text(text) => Self::parse(&text),
        }
        .map_err(serde::de::Error::custom)
    }
}
