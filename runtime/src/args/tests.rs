//! Tests of decoding and encoding.
