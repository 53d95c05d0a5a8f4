//! SHA-1, which PVE's digests of configuration files are. Nothing secret rests on it.

use super::hex;

/// The digest of a text, in hex.
pub(crate) fn digest(text: &str) -> String {
    let mut state: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    for block in padded(text.as_bytes()).chunks(64) {
        state = compress(state, block);
    }
    let bytes: Vec<u8> = state.iter().flat_map(|word| word.to_be_bytes()).collect();
    hex(&bytes)
}

/// The message, a one, zeros, and its length in bits, in whole blocks.
fn padded(text: &[u8]) -> Vec<u8> {
    let mut padded = text.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    let bits = u64::try_from(text.len()).unwrap_or_default() * 8;
    padded.extend(bits.to_be_bytes());
    padded
}

#[allow(clippy::many_single_char_names, reason = "the names of the standard")]
fn compress(state: [u32; 5], block: &[u8]) -> [u32; 5] {
    let mut words: Vec<u32> =
        block.chunks(4).map(|word| word.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte))).collect();
    while words.len() < 80 {
        let back = |by: usize| words.len().checked_sub(by).and_then(|at| words.get(at)).copied().unwrap_or_default();
        words.push((back(3) ^ back(8) ^ back(14) ^ back(16)).rotate_left(1));
    }
    let [mut a, mut b, mut c, mut d, mut e] = state;
    for (round, word) in words.iter().enumerate() {
        let (mix, constant) = match round / 20 {
            0 => (b & c | !b & d, 0x5a82_7999),
            1 => (b ^ c ^ d, 0x6ed9_eba1),
            2 => (b & c | b & d | c & d, 0x8f1b_bcdc),
            _ => (b ^ c ^ d, 0xca62_c1d6_u32),
        };
        let next = a.rotate_left(5).wrapping_add(mix).wrapping_add(e).wrapping_add(constant).wrapping_add(*word);
        (a, b, c, d, e) = (next, a, b.rotate_left(30), c, d);
    }
    let [h0, h1, h2, h3, h4] = state;
    [h0.wrapping_add(a), h1.wrapping_add(b), h2.wrapping_add(c), h3.wrapping_add(d), h4.wrapping_add(e)]
}

#[cfg(test)]
mod tests {
    use super::digest;

    #[test]
    fn known_digests() {
        assert_eq!(digest(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
        assert_eq!(digest("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(digest(&"a".repeat(1000)), "291e9a6c66994949b57ba5e650361e98fc36b1ba");
    }
}
