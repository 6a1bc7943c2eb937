//! One integration-test binary.
mod disk_conformance;
