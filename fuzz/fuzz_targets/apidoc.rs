//! Runs `pvegate_fuzz::apidoc` over whatever libFuzzer thinks of.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pvegate_fuzz::apidoc(data));
