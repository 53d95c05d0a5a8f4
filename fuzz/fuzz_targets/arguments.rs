//! Runs `pvegate_fuzz::arguments` over whatever libFuzzer thinks of.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pvegate_fuzz::arguments(data));
