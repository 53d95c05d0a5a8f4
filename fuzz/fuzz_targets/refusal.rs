//! Runs `pvegate_fuzz::refusal` over whatever libFuzzer thinks of.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pvegate_fuzz::refusal(data));
