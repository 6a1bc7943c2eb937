//! Which events a subscriber wants.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;

use crate::Event;

/// A choice of events by domain, source and type. What is left empty does not restrict; an empty filter lets
/// everything through.
///
/// ```
/// use strandline_core::Filter;
///
/// let windows = Filter::all().source("compositor").event_type("window.opened").event_type("window.closed");
/// assert!(windows.selects(1, "compositor", "window.opened"));
/// assert!(!windows.selects(1, "audio", "window.opened"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    domains: BTreeSet<u8>,
    sources: BTreeSet<Box<str>>,
    event_types: BTreeSet<Box<str>>,
}

impl Filter {
    /// Every event.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// Also events of this domain.
    #[must_use]
    pub fn domain(mut self, domain: u8) -> Self {
        self.domains.insert(domain);
        self
    }

    /// Also events from this source.
    #[must_use]
    pub fn source(mut self, source: &str) -> Self {
        self.sources.insert(source.into());
        self
    }

    /// Also events of this type.
    #[must_use]
    pub fn event_type(mut self, event_type: &str) -> Self {
        self.event_types.insert(event_type.into());
        self
    }

    /// Whether it lets everything through.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.domains.is_empty() && self.sources.is_empty() && self.event_types.is_empty()
    }

    /// Whether it lets this event through.
    #[must_use]
    pub fn matches(&self, event: &Event<'_>) -> bool {
        self.selects(event.domain, event.source, event.event_type)
    }

    /// Whether it lets events of this kind through.
    #[must_use]
    pub fn selects(&self, domain: u8, source: &str, event_type: &str) -> bool {
        self.selects_domain(domain) && self.selects_source(source) && self.selects_type(event_type)
    }

    /// The domains that it is restricted to, ascending; none if it is not.
    pub fn domains(&self) -> impl ExactSizeIterator<Item = u8> {
        self.domains.iter().copied()
    }

    /// The sources that it is restricted to, in order; none if it is not.
    pub fn sources(&self) -> impl ExactSizeIterator<Item = &str> {
        self.sources.iter().map(AsRef::as_ref)
    }

    /// The types that it is restricted to, in order; none if it is not.
    pub fn event_types(&self) -> impl ExactSizeIterator<Item = &str> {
        self.event_types.iter().map(AsRef::as_ref)
    }

    pub(crate) fn selects_domain(&self, domain: u8) -> bool {
        self.domains.is_empty() || self.domains.contains(&domain)
    }

    pub(crate) fn selects_source(&self, source: &str) -> bool {
        self.sources.is_empty() || self.sources.contains(source)
    }

    pub(crate) fn selects_type(&self, event_type: &str) -> bool {
        self.event_types.is_empty() || self.event_types.contains(event_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_restricts_only_when_it_is_named() {
        assert!(Filter::all().is_all() && Filter::all().selects(0, "", ""));
        let filter = Filter::all().domain(1).domain(2).source("a").event_type("t");
        assert!(filter.selects(1, "a", "t") && filter.selects(2, "a", "t"));
        for (domain, source, event_type) in [(3, "a", "t"), (1, "b", "t"), (1, "a", "u")] {
            assert!(!filter.selects(domain, source, event_type), "{domain} {source} {event_type}");
        }
        assert!(Filter::all().domain(7).selects(7, "any", "any"), "what is not named does not restrict");
    }
}
