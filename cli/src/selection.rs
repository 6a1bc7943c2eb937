//! The flags that `cat` and `tail` share: what is read, which records, and how they are printed.

use std::path::PathBuf;

use clap::Args;
use strandline_core::FramingKind;

use crate::outcome::Failure;
use crate::output::{Filter, Format};
use crate::target::Source;

#[derive(Args)]
#[group(skip)]
pub(crate) struct Flags {
    /// A journal's directory, one segment file, or a file of events such as event-journal.bin
    #[arg(value_name = "DIR|FILE")]
    path: PathBuf,
    /// The journal's name, where the directory holds several
    #[arg(long, value_name = "NAME")]
    journal: Option<String>,
    /// Only events of this source
    #[arg(long, value_name = "SOURCE")]
    source: Option<String>,
    /// Only events of this type
    #[arg(long = "type", value_name = "TYPE")]
    event_type: Option<String>,
    /// What is printed of a record
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Format::Jsonl)]
    output: Format,
}

/// What is read and how it is printed, checked.
pub(crate) struct Selection {
    pub(crate) source: Source,
    pub(crate) filter: Filter,
    pub(crate) format: Format,
}

impl Selection {
    pub(crate) fn check(flags: Flags) -> Result<Self, Failure> {
        let source = Source::one(&flags.path, flags.journal.as_deref())?;
        let filter = Filter { source: flags.source, event_type: flags.event_type };
        if source.kind() == FramingKind::Pryj && !filter.is_empty() {
            return Err(Failure::cannot_run(anyhow::anyhow!(
                "{} holds opaque records, which have neither source nor type: leave --source and --type out",
                source.name()
            )));
        }
        Ok(Self { source, filter, format: flags.output })
    }
}
