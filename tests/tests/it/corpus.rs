//! The corpus of the fuzzers, replayed without one: what they found once stays found.

use std::fs;
use std::path::Path;

use strandline_tests::fuzzing::TARGETS;

#[test]
fn every_file_of_the_corpus_holds() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    let mut folders: Vec<String> = Vec::new();
    for target in TARGETS {
        let mut paths: Vec<_> =
            fs::read_dir(corpus.join(target.name)).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        assert!(!paths.is_empty(), "{} has no corpus", target.name);
        let mut ran = 0;
        for path in &paths {
            let bytes = fs::read(path).unwrap();
            let held = std::panic::catch_unwind(|| (target.run)(&bytes));
            assert!(
                held.is_ok(),
                "{} does not hold: run the target with it, as fuzz/README.md says",
                path.display()
            );
            ran += 1;
        }
        assert_eq!(ran, paths.len());
        folders.push(target.name.to_owned());
    }
    let mut found: Vec<String> = fs::read_dir(&corpus)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    assert_eq!(found, folders, "every folder belongs to a target, and every target has one");
}
