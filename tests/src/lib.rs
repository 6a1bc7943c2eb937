//! What spans the crates of Strandline: the bodies of the fuzz targets, which ordinary tests call too.

pub mod fuzzing;
