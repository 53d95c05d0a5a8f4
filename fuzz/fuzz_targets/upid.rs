//! Runs `pvegate_fuzz::upid` over whatever libFuzzer thinks of.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pvegate_fuzz::upid(data));
