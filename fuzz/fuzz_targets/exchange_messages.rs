#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    strandline_tests::fuzzing::run("exchange_messages", bytes);
});
