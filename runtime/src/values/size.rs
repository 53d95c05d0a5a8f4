//! Decides what a disk size is: a number with an optional unit, what a disk may grow to or by, and how
//! much a new one gets.

use super::{ValueError, text_traits, text_value};

/// A size as PVE writes it (`32G`, `528K`); without a unit it is in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Size {
    text: Box<str>,
    bytes: u64,
}

impl Size {
    /// Reads digits, an optional fraction, and one of `K`, `M`, `G`, `T`.
    pub fn parse(text: &str) -> Result<Self, ValueError> {
        match bytes(text) {
            Some(bytes) => Ok(Self { text: text.into(), bytes }),
            None => Err(ValueError::new(
                "a size",
                text,
                "a number with `K`, `M`, `G` or `T` (upper case), like `32G`; bytes without one",
            )),
        }
    }

    /// Writes bytes as PVE does: in the largest unit that needs no fraction.
    pub fn of_bytes(bytes: u64) -> Self {
        let mut number = bytes;
        let mut unit = "";
        for larger in ["K", "M", "G", "T"] {
            if !number.is_multiple_of(1024) {
                break;
            }
            number /= 1024;
            unit = larger;
        }
        Self { text: format!("{number}{unit}").into(), bytes }
    }

    /// The text as it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The size in bytes, rounded down.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

text_traits!(Size);

/// What becomes of a disk's size: `32G` is the new one, `+2G` is added. PVE never shrinks a disk.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Growth {
    text: Box<str>,
    size: Size,
}

impl Growth {
    /// Reads a size, with or without `+`.
    pub fn parse(text: &str) -> Result<Self, ValueError> {
        match Size::parse(text.strip_prefix('+').unwrap_or(text)) {
            Ok(size) => Ok(Self { text: text.into(), size }),
            Err(_) => Err(ValueError::new(
                "a size to grow to or by",
                text,
                "a number with `K`, `M`, `G` or `T` (upper case), like `32G`; `+2G` to grow by it",
            )),
        }
    }

    /// The text as it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The size that is given.
    pub fn size(&self) -> &Size {
        &self.size
    }

    /// Whether it is added to what is there.
    pub fn is_relative(&self) -> bool {
        self.text.starts_with('+')
    }

    /// The size afterwards, of a disk that has `now` bytes; `None` where no disk can be that large.
    pub fn bytes_after(&self, now: u64) -> Option<u64> {
        if self.is_relative() { now.checked_add(self.size.bytes) } else { Some(self.size.bytes) }
    }
}

text_traits!(Growth);

text_value!(
    /// The size of a new volume, in GiB and without a unit: the `32` of `local-lvm:32`.
    Gib,
    "a size in GiB",
    "a number without a unit, like `32` or `0.5`",
    |text| scaled(text, 30).is_some()
);

impl Gib {
    /// The size in bytes, rounded down.
    pub fn bytes(&self) -> u64 {
        scaled(self.as_str(), 30).unwrap_or_default()
    }
}

fn bytes(text: &str) -> Option<u64> {
    let units = [('K', 10), ('M', 20), ('G', 30), ('T', 40)];
    match units.iter().find_map(|(unit, shift)| Some((text.strip_suffix(*unit)?, *shift))) {
        Some((number, shift)) => scaled(number, shift),
        None => scaled(text, 0),
    }
}

/// A decimal number times a power of two, rounded down; `None` for what is none or does not fit.
fn scaled(number: &str, shift: u32) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').map_or((number, None), |(whole, fraction)| (whole, Some(fraction)));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    // Finer than a byte, and small enough to be multiplied.
    if !digits(whole) || !fraction.is_none_or(|part| digits(part) && part.len() <= 18) {
        return None;
    }
    let unit = 1_u64 << shift;
    let mut bytes = whole.parse::<u64>().ok()?.checked_mul(unit)?;
    if let Some(fraction) = fraction {
        let scale = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
        let part = u128::from(fraction.parse::<u64>().ok()?) * u128::from(unit) / scale;
        bytes = bytes.checked_add(u64::try_from(part).ok()?)?;
    }
    Some(bytes)
}
