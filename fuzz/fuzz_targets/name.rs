//! Runs `pvegate_fuzz::name` over whatever libFuzzer thinks of.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pvegate_fuzz::name(data));
