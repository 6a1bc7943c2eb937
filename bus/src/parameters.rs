//! What the query of a request says. An unknown parameter is refused: misspelt, it would be silently without effect.

use strandline_core::{Filter, Seq};

use crate::problem::Problem;

/// A query, taken apart.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// The parameters of a query, all of them among `known`.
    pub(crate) fn parse(query: Option<&str>, known: &[&str]) -> Result<Self, Problem> {
        let query = query.unwrap_or_default().as_bytes();
        check_text(query)?;
        let pairs: Vec<(String, String)> = form_urlencoded::parse(query).into_owned().collect();
        if let Some((name, _)) = pairs.iter().find(|(name, _)| !known.contains(&&**name)) {
            let known = known.join(", ");
            return Err(Problem::bad(format!("there is no parameter `{name}` here: use {known}")));
        }
        Ok(Self(pairs))
    }

    fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(found, _)| found == name).map(|(_, value)| &**value)
    }

    /// The value of a parameter that is given at most once.
    pub(crate) fn one(&self, name: &str) -> Result<Option<&str>, Problem> {
        let mut all = self.all(name);
        match (all.next(), all.next()) {
            (value, None) => Ok(value),
            (_, Some(_)) => Err(Problem::bad(format!("the parameter `{name}` is given twice: give it once"))),
        }
    }

    /// A parameter that has to be there, and not empty.
    pub(crate) fn required(&self, name: &str, why: &str) -> Result<&str, Problem> {
        let value = self.one(name)?.filter(|value| !value.is_empty());
        value.ok_or_else(|| Problem::bad(format!("the parameter `{name}` is missing: {why}")))
    }

    /// The domain of events that are published.
    pub(crate) fn domain(&self) -> Result<u8, Problem> {
        self.one("domain")?.map_or(Ok(1), domain)
    }

    /// Which events are wanted. Each parameter can be given several times.
    pub(crate) fn filter(&self) -> Result<Filter, Problem> {
        let mut filter = Filter::all();
        for value in self.all("domain") {
            filter = filter.domain(domain(value)?);
        }
        filter = self.all("source").fold(filter, Filter::source);
        Ok(self.all("type").fold(filter, Filter::event_type))
    }
}

/// What is no UTF-8 would be taken for other text.
fn check_text(query: &[u8]) -> Result<(), Problem> {
    let digit = |at: Option<&u8>| at.and_then(|digit| char::from(*digit).to_digit(16));
    let (mut bytes, mut at) = (Vec::with_capacity(query.len()), 0);
    while let Some(byte) = query.get(at) {
        let escaped = match (byte, digit(query.get(at + 1)), digit(query.get(at + 2))) {
            (b'%', Some(high), Some(low)) => u8::try_from(high * 16 + low).ok(),
            _ => None,
        };
        bytes.push(escaped.unwrap_or(*byte));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    match std::str::from_utf8(&bytes) {
        Ok(_) => Ok(()),
        Err(_) => Err(Problem::bad("the query is no percent-encoded UTF-8: encode it so")),
    }
}

fn domain(value: &str) -> Result<u8, Problem> {
    let number = value.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| Problem::bad(format!("`{value}` is no domain: use a number from 1 to 255")))
}

/// A sequence number as a client gives it.
pub(crate) fn sequence(name: &str, value: &str) -> Result<Seq, Problem> {
    let digits = (!value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit())).then_some(value);
    let number = digits.and_then(|digits| digits.parse().ok()).filter(|number| *number <= Seq::LAST.get());
    number.map(Seq::new).ok_or_else(|| {
        // Long nonsense is not repeated in full.
        let shown: String = value.chars().take(40).collect();
        Problem::bad(format!(
            "`{shown}` is no sequence number for {name}: use the id of the last event that was processed, or 0 for what is kept"
        ))
    })
}
