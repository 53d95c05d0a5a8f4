//! Decides what a disk size is: a number with an optional unit, and `+` where a disk grows by it.

use super::{ValueError, text_traits};

/// A size as PVE writes it (`32G`, `528K`, `+0.5T`); without a unit it is in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Size {
    text: Box<str>,
    bytes: u64,
    relative: bool,
}

impl Size {
    /// Reads digits, an optional fraction, and one of `K`, `M`, `G`, `T`.
    pub fn parse(text: &str) -> Result<Self, ValueError> {
        Self::read(text).ok_or_else(|| {
            ValueError::new(
                "a size",
                text,
                "a number with `K`, `M`, `G` or `T` (upper case), like `32G`; `+2G` to grow by it",
            )
        })
    }

    fn read(text: &str) -> Option<Self> {
        let (relative, rest) = match text.strip_prefix('+') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (number, shift) = match rest.as_bytes().last()? {
            b'K' => (rest.get(..rest.len() - 1)?, 10),
            b'M' => (rest.get(..rest.len() - 1)?, 20),
            b'G' => (rest.get(..rest.len() - 1)?, 30),
            b'T' => (rest.get(..rest.len() - 1)?, 40),
            _ => (rest, 0),
        };
        let (whole, fraction) =
            number.split_once('.').map_or((number, None), |(whole, fraction)| (whole, Some(fraction)));
        let digits =
            |part: &str| !part.is_empty() && part.len() <= 18 && part.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || !fraction.is_none_or(digits) {
            return None;
        }
        let unit = 1_u64 << shift;
        let mut bytes = whole.parse::<u64>().ok()?.checked_mul(unit)?;
        if let Some(fraction) = fraction {
            let scale = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
            let part = u128::from(fraction.parse::<u64>().ok()?) * u128::from(unit) / scale;
            bytes = bytes.checked_add(u64::try_from(part).ok()?)?;
        }
        Some(Self { text: text.into(), bytes, relative })
    }

    /// The text as it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The size in bytes, rounded down.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether it is added to what is there.
    pub fn is_relative(&self) -> bool {
        self.relative
    }
}

text_traits!(Size);
