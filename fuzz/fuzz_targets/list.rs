//! Runs `pvegate_fuzz::list` over whatever libFuzzer thinks of.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pvegate_fuzz::list(data));
