//! Runs `pvegate_fuzz::encoded` over whatever libFuzzer thinks of.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pvegate_fuzz::encoded(data));
