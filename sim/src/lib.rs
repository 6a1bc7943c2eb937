//! The proof.
pub mod disk;
