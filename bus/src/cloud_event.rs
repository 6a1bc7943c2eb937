//! CloudEvents 1.0: which JSON objects are one, and what of it goes where.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Error, Serialize, Serializer};
use serde_json::value::RawValue;

/// The only version that is treated as an event; any other is plain JSON.
const SPEC_VERSION: &str = "1.0";

/// The members of a JSON object in their order, each as it was written: numbers keep their digits.
#[derive(Debug)]
pub struct Members<'a>(Vec<(Name<'a>, &'a RawValue)>);

/// A member's name as it was written. It need not be text: JSON lets half a surrogate pair pass.
#[derive(Debug)]
struct Name<'a>(&'a RawValue);

/// A CloudEvents 1.0 object.
#[derive(Debug)]
pub struct CloudEvent<'a> {
    /// Its type.
    pub event_type: Cow<'a, str>,
    /// Its source.
    pub source: Cow<'a, str>,
    id: Cow<'a, str>,
    members: Members<'a>,
}

/// What a CloudEvents 1.0 object lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a CloudEvents 1.0 object needs {attribute:?} as a string that is not empty")]
pub struct Incomplete {
    attribute: &'static str,
}

/// What an attribute of a CloudEvent may not be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAttribute {
    /// A name is half a surrogate pair.
    #[error("the name of an attribute is no text")]
    NoText,
    /// A name has other characters than are allowed.
    #[error("`{name}` is no name for an attribute: use lower-case letters and digits")]
    Name {
        /// The name.
        name: String,
    },
    /// A name is there twice.
    #[error("the attribute `{name}` is given twice: give it once")]
    Twice {
        /// The name.
        name: String,
    },
    /// A value has a type that attributes do not have.
    #[error("the attribute `{name}` is neither a string nor a boolean nor an integer of 32 bits")]
    Value {
        /// The name.
        name: String,
    },
    /// An attribute of the specification is no string, or empty.
    #[error("the attribute `{name}` has to be a string that is not empty")]
    Empty {
        /// The name.
        name: String,
    },
    /// The time is none.
    #[error("the attribute `time` is no RFC 3339 timestamp: {time}")]
    Time {
        /// What it says.
        time: String,
    },
    /// It has its data twice.
    #[error("it has both `data` and `data_base64`: give one of them")]
    DataTwice,
    /// Its binary data cannot be decoded.
    #[error("its `data_base64` is no Base64")]
    Base64,
}

/// Whether this may be the name of an attribute.
pub(crate) fn check_attribute(name: &str) -> Result<(), BadAttribute> {
    let is_name =
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    if is_name { Ok(()) } else { Err(BadAttribute::Name { name: name.into() }) }
}

/// Attributes of the specification that are strings where they are there.
const STRINGS: [&str; 4] = ["datacontenttype", "dataschema", "subject", "time"];

fn check_member(name: &str, value: &str) -> Result<(), BadAttribute> {
    check_attribute(name)?;
    let bad = || BadAttribute::Value { name: name.into() };
    if value.starts_with(['[', '{']) {
        return Err(bad());
    }
    match serde_json::from_str(value).map_err(|_| bad())? {
        serde_json::Value::String(text) if name == "time" && !is_rfc_3339(&text) => {
            Err(BadAttribute::Time { time: text.chars().take(40).collect() })
        }
        serde_json::Value::String(text) if text.is_empty() && STRINGS.contains(&name) => {
            Err(BadAttribute::Empty { name: name.into() })
        }
        serde_json::Value::String(_) | serde_json::Value::Null => Ok(()),
        _ if STRINGS.contains(&name) => Err(BadAttribute::Empty { name: name.into() }),
        serde_json::Value::Bool(_) => Ok(()),
        serde_json::Value::Number(number)
            if number.as_i64().is_some_and(|number| i32::try_from(number).is_ok()) =>
        {
            Ok(())
        }
        _ => Err(bad()),
    }
}

/// Whether it is a timestamp by the letter of RFC 3339. More is understood here, such as a time zone's name in brackets, but not by
/// those who read the event.
fn is_rfc_3339(text: &str) -> bool {
    let shape: Vec<u8> = text.bytes().map(|byte| if byte.is_ascii_digit() { b'0' } else { byte }).collect();
    let Some((b"0000-00-00", [b'T' | b't', time @ ..])) = shape.split_at_checked(10) else { return false };
    let Some((b"00:00:00", rest)) = time.split_at_checked(8) else { return false };
    let offset = match rest.strip_prefix(b".0") {
        Some(fraction) => {
            let digits = fraction.iter().take_while(|byte| **byte == b'0').count();
            fraction.split_at(digits).1
        }
        None => rest,
    };
    matches!(offset, b"Z" | b"z" | b"+00:00" | b"-00:00") && text.parse::<jiff::Timestamp>().is_ok()
}

impl<'a> CloudEvent<'a> {
    /// Reads a JSON object's members as an event; nothing if it does not claim to be one.
    pub fn from_members(members: Members<'a>) -> Result<Option<Self>, Incomplete> {
        if members.text("specversion").as_deref() != Some(SPEC_VERSION) {
            return Ok(None);
        }
        let required = |attribute: &'static str| {
            members.text(attribute).filter(|text| !text.is_empty()).ok_or(Incomplete { attribute })
        };
        let id = required("id")?;
        let (event_type, source) = (required("type")?, required("source")?);
        Ok(Some(Self { event_type, source, id, members }))
    }

    /// Reads a text that may be one; nothing if it is not.
    #[must_use]
    pub fn read(text: &'a str) -> Option<Self> {
        Self::from_members(Members::parse(text).ok()?).ok()?
    }

    /// Its id, which with its source tells it from every other event.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether names and values of its attributes are what the specification allows. What is on the disk already is not
    /// held to this.
    ///
    /// # Errors
    /// [`BadAttribute`] names the first one that is not.
    pub fn check(&self) -> Result<(), BadAttribute> {
        let mut seen = BTreeSet::new();
        for (name, value) in &self.members.0 {
            let name = text(name.0).ok_or(BadAttribute::NoText)?;
            if !seen.insert(name.to_string()) {
                return Err(BadAttribute::Twice { name: name.into() });
            }
            match &*name {
                "data" | "data_base64" => {}
                _ => check_member(&name, value.get())?,
            }
        }
        if seen.contains("data") && seen.contains("data_base64") {
            return Err(BadAttribute::DataTwice);
        }
        match self.members.get("data_base64").map(text) {
            Some(base64) if base64.as_deref().is_none_or(|text| BASE64_STANDARD.decode(text).is_err()) => {
                Err(BadAttribute::Base64)
            }
            _ => Ok(()),
        }
    }

    /// Its payload, if it has one.
    pub fn data(&self) -> Option<&'a RawValue> {
        self.members.get("data")
    }

    /// All its members but the payload, as a JSON object.
    pub fn attributes(&self) -> Attributes<'_> {
        Attributes(&self.members)
    }
}

impl<'a> Members<'a> {
    /// Reads a JSON object; an error if the text is something else.
    pub fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The value of a member. Of several with the same name the last counts, as with most readers.
    fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().rev().find(|(member, _)| member.is(name)).map(|(_, value)| *value)
    }

    fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        text(self.get(name)?)
    }
}

impl Name<'_> {
    fn is(&self, name: &str) -> bool {
        text(self.0).as_deref() == Some(name)
    }
}

/// What a JSON string says; nothing if it is something else, or no text.
fn text(value: &RawValue) -> Option<Cow<'_, str>> {
    serde_json::from_str::<Text<'_>>(value.get()).ok().map(|text| text.0)
}

/// A string, borrowed where it has no escapes.
#[derive(serde::Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Members<'de>, M::Error> {
        let mut members = Vec::new();
        while let Some((name, value)) = map.next_entry::<&'de RawValue, &'de RawValue>()? {
            members.push((Name(name), value));
        }
        Ok(Members(members))
    }
}

/// An event's members but `data`, in their order.
pub struct Attributes<'a>(&'a Members<'a>);

impl Serialize for Attributes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let members = self.0.0.iter().filter(|(name, _)| !name.is("data"));
        let members: Vec<_> =
            members.map(|(Name(name), value)| format!("{}:{}", name.get(), value.get())).collect();
        // Through a map of text, a name that is none would not pass.
        let object = RawValue::from_string(format!("{{{}}}", members.join(","))).map_err(S::Error::custom)?;
        object.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<CloudEvent<'_>>, Incomplete> {
        CloudEvent::from_members(Members::parse(text).unwrap())
    }

    #[test]
    fn an_event_is_taken_apart_without_touching_its_digits() {
        let text =
            r#"{"specversion":"1.0","id":"1","source":"/\u00e4","type":"t","n":1.50,"data":{"x":1e2}}"#;
        let event = read(text).unwrap().unwrap();
        assert_eq!((&*event.event_type, &*event.source), ("t", "/ä"));
        assert_eq!(event.data().unwrap().get(), r#"{"x":1e2}"#);
        assert_eq!(
            serde_json::to_string(&event.attributes()).unwrap(),
            r#"{"specversion":"1.0","id":"1","source":"/ä","type":"t","n":1.50}"#.replace("/ä", r"/\u00e4")
        );
    }

    #[test]
    fn a_time_is_what_the_standard_says_and_no_more() {
        for time in [
            "2026-11-30T12:00:00Z",
            "2026-11-30t12:00:00z",
            "2026-11-30T23:59:60Z",
            "2026-11-30T12:00:00.123456789+05:45",
            "2026-11-30T12:00:00.5-08:00",
        ] {
            assert!(is_rfc_3339(time), "{time}");
        }
        for time in [
            "",
            "2026-11-30",
            "2026-11-30T12:00:00",
            "2026-11-30 12:00:00Z",
            "2026-11-30T12:00Z",
            "2026-11-30T12:00:00,5Z",
            "2026-11-30T12:00:00.Z",
            "2026-11-30T12:00:00+01",
            "2026-11-30T12:00:00+0100",
            "2026-11-30T12:00:00+01:00[Europe/Berlin]",
            "20261130T120000Z",
            "2026-13-30T12:00:00Z",
            "2026-11-30T12:00:00+99:00",
            "2026-11-30T12:00:00Zé",
        ] {
            assert!(!is_rfc_3339(time), "{time}");
        }
    }

    #[test]
    fn names_are_kept_as_they_were_written() {
        let text = r#"{"specversion":"1.0","id":"1","source":"s","t\u0079pe":"t","\ud800":1,"dat\u0061":2}"#;
        let event = read(text).unwrap().unwrap();
        assert_eq!((&*event.event_type, event.data().unwrap().get()), ("t", "2"));
        let attributes = r#"{"specversion":"1.0","id":"1","source":"s","t\u0079pe":"t","\ud800":1}"#;
        assert_eq!(serde_json::to_string(&event.attributes()).unwrap(), attributes);
        assert!(Members::parse("{1:2}").is_err() && Members::parse(r#"{"a":1,}"#).is_err());
    }

    #[test]
    fn what_claims_nothing_is_plain_json() {
        for text in ["{}", r#"{"type":"t"}"#, r#"{"specversion":"0.3"}"#, r#"{"specversion":1.0}"#] {
            assert!(read(text).unwrap().is_none(), "{text}");
        }
    }

    #[test]
    fn what_claims_to_be_an_event_must_be_one() {
        for (text, attribute) in [
            (r#"{"specversion":"1.0","source":"s","type":"t"}"#, "id"),
            (r#"{"specversion":"1.0","id":"1","type":"t"}"#, "source"),
            (r#"{"specversion":"1.0","id":"1","source":"s"}"#, "type"),
            (r#"{"specversion":"1.0","id":"1","source":"s","type":7}"#, "type"),
            (r#"{"specversion":"1.0","id":"1","source":"","type":"t"}"#, "source"),
            (r#"{"specversion":"1.0","id":"1","source":"s","type":"t","type":null}"#, "type"),
        ] {
            assert_eq!(read(text).err(), Some(Incomplete { attribute }), "{text}");
        }
    }
}
