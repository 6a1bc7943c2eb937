//! The flags that choose events as a subscription does.

use clap::Args;
use strandline_core::Filter;

#[derive(Args)]
#[group(skip)]
pub(crate) struct Flags {
    /// Only events of this source; may be given several times
    #[arg(long = "source", value_name = "SOURCE")]
    sources: Vec<String>,
    /// Only events of this type; may be given several times
    #[arg(long = "type", value_name = "TYPE")]
    event_types: Vec<String>,
    /// Only events of this domain; may be given several times
    #[arg(long = "domain", value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    domains: Vec<u8>,
}

impl Flags {
    pub(crate) fn filter(&self) -> Filter {
        let filter = self.domains.iter().fold(Filter::all(), |filter, domain| filter.domain(*domain));
        let filter = self.sources.iter().fold(filter, |filter, source| filter.source(source));
        self.event_types.iter().fold(filter, |filter, event_type| filter.event_type(event_type))
    }
}
