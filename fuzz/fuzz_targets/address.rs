//! Runs `pvegate_fuzz::address` over whatever libFuzzer thinks of.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pvegate_fuzz::address(data));
