//! The binary `strandline`; everything is in the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    strandline_cli::run()
}
