//! The codec against its schema, byte by byte.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a failed step is a failed test"
)]

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use roxmltree::{Document, Node};

use super::*;

const SCHEMA: &str = include_str!("../../schema/subscriptions.xml");

fn recorded() -> Recorded {
    Recorded {
        id: SubscriptionId::new(0x0102_0304_0506_0708),
        name: "context".into(),
        filter: Filter::all().domain(1).domain(9).source("audio").source("größer").event_type("opened"),
        pointer: Seq::new(4_782),
        passed: Seq::new(4_800),
        presence: Presence::Expired,
        since: Timestamp::from_millis(-5),
        gap: Some(RecordedGap {
            from: Seq::new(4_783),
            end: Seq::new(4_801),
            count: Some(17),
            reason: GapReason::TooMany,
        }),
    }
}

fn records() -> Vec<Record> {
    let (id, pointer, passed) = (SubscriptionId::new(3), Seq::new(1), Seq::new(2));
    let plain = Recorded { filter: Filter::all(), gap: None, presence: Presence::Connected, ..recorded() };
    vec![
        Record::NextId(7),
        Record::Subscription(recorded()),
        Record::Subscription(plain),
        Record::Pointer { id, pointer, passed },
        Record::Removed(id),
    ]
}

fn attribute<T: core::str::FromStr>(node: Node<'_, '_>, name: &str) -> T {
    node.attribute(name)
        .and_then(|value| value.parse().ok())
        .unwrap_or_else(|| panic!("{node:?} has no {name}"))
}

fn children<'a>(node: Node<'a, 'a>, tag: &'static str) -> impl Iterator<Item = Node<'a, 'a>> {
    node.children().filter(move |child| child.has_tag_name(tag))
}

/// What each fixed field of a record holds, by its name in the schema.
fn fields(record: &Record) -> (&'static str, BTreeMap<&'static str, Vec<u8>>) {
    let le = |value: u64| value.to_le_bytes().to_vec();
    match record {
        Record::NextId(next) => ("NextId", BTreeMap::from([("nextId", le(*next))])),
        Record::Pointer { id, pointer, passed } => {
            let fields = [("id", le(id.get())), ("pointer", le(pointer.get())), ("passed", le(passed.get()))];
            ("Pointer", BTreeMap::from(fields))
        }
        Record::Removed(id) => ("Removed", BTreeMap::from([("id", le(id.get()))])),
        Record::Subscription(of) => {
            let gap = of.gap;
            let fields = [
                ("id", le(of.id.get())),
                ("pointer", le(of.pointer.get())),
                ("passed", le(of.passed.get())),
                ("since", of.since.as_millis().to_le_bytes().to_vec()),
                ("presence", vec![of.presence.value()]),
                ("gapReason", vec![reason_value(gap.map(|gap| gap.reason))]),
                ("gapFrom", le(gap.map_or(0, |gap| gap.from.get()))),
                ("gapEnd", le(gap.map_or(0, |gap| gap.end.get()))),
                ("gapCount", le(gap.and_then(|gap| gap.count).unwrap_or(u64::MAX))),
            ];
            ("Subscription", BTreeMap::from(fields))
        }
    }
}

fn size_of(document: &Document<'_>, name: &str) -> usize {
    match name {
        "uint8" => 1,
        "uint16" => 2,
        "uint64" | "int64" => 8,
        named => {
            let of = |node: &Node<'_, '_>| node.attribute("name") == Some(named);
            let node = document.descendants().find(|node| node.has_tag_name("enum") && of(node)).unwrap();
            size_of(document, &attribute::<String>(node, "encodingType"))
        }
    }
}

#[test]
fn every_offset_id_and_length_is_the_schemas() {
    let document = Document::parse(SCHEMA).unwrap();
    let root = document.root_element();
    assert_eq!(
        (attribute::<u16>(root, "id"), attribute::<u16>(root, "version")),
        (super::SCHEMA.id, super::SCHEMA.version)
    );
    let message = |name: &str| {
        let named =
            |node: &Node<'_, '_>| node.tag_name().name() == "message" && node.attribute("name") == Some(name);
        document.descendants().find(named).unwrap()
    };
    let mut seen = Vec::new();
    for record in records() {
        let (name, fields) = fields(&record);
        let (node, bytes) = (message(name), record.encode());
        let (block_len, id) = (attribute::<u16>(node, "blockLength"), attribute::<u16>(node, "id"));
        let header: Vec<u8> = [block_len, id, super::SCHEMA.id, super::SCHEMA.version]
            .iter()
            .flat_map(|field| field.to_le_bytes())
            .collect();
        assert_eq!(bytes[..8], header, "{name}");
        let mut end = 0;
        for field in children(node, "field") {
            let (field_name, at) = (attribute::<String>(field, "name"), attribute::<usize>(field, "offset"));
            let len = size_of(&document, &attribute::<String>(field, "type"));
            assert_eq!(at, end, "{name}.{field_name} follows the field before it");
            assert_eq!(bytes[8 + at..8 + at + len], fields[field_name.as_str()], "{name}.{field_name}");
            end = at + len;
        }
        assert_eq!((end, children(node, "field").count()), (usize::from(block_len), fields.len()), "{name}");
        seen.push(id);
    }
    seen.dedup();
    let messages = document.descendants().filter(|node| node.tag_name().name() == "message");
    assert_eq!(messages.map(|node| attribute::<u16>(node, "id")).collect::<Vec<_>>(), seen, "every message");
}

#[test]
fn groups_and_texts_follow_the_block_in_the_schemas_order() {
    let document = Document::parse(SCHEMA).unwrap();
    let node = document.descendants().find(|node| node.attribute("name") == Some("Subscription")).unwrap();
    let order: Vec<_> = node
        .children()
        .filter(|child| child.has_tag_name("group") || child.has_tag_name("data"))
        .map(|child| attribute::<String>(child, "name"))
        .collect();
    assert_eq!(order, ["sources", "eventTypes", "name", "domains"]);
    let text = |text: &str| [&u16::try_from(text.len()).unwrap().to_le_bytes()[..], text.as_bytes()].concat();
    let wanted = [
        &[0, 0, 2, 0][..],
        &text("audio"),
        &text("größer"),
        &[0, 0, 1, 0],
        &text("opened"),
        &text("context"),
        &[2, 0, 1, 9],
    ]
    .concat();
    let bytes = Record::Subscription(recorded()).encode();
    assert_eq!(bytes[8 + usize::from(SUBSCRIPTION.block_len)..], wanted);
}

#[test]
fn every_enum_value_is_the_schemas() {
    let document = Document::parse(SCHEMA).unwrap();
    let values = |name: &str| -> Vec<(String, u8)> {
        let named = |node: &Node<'_, '_>| node.has_tag_name("enum") && node.attribute("name") == Some(name);
        let node = document.descendants().find(named).unwrap();
        children(node, "validValue")
            .map(|value| (attribute(value, "name"), value.text().unwrap().parse().unwrap()))
            .collect()
    };
    let presence = [
        ("CONNECTED", Presence::Connected),
        ("SUSPENDED", Presence::Suspended),
        ("EXPIRED", Presence::Expired),
    ];
    assert_eq!(values("Presence"), presence.map(|(name, value)| (name.to_string(), value.value())));
    let reasons = [
        ("NONE", None),
        ("TOO_MANY", Some(GapReason::TooMany)),
        ("EXPIRED", Some(GapReason::Expired)),
        ("BEYOND", Some(GapReason::Beyond)),
    ];
    assert_eq!(values("GapReason"), reasons.map(|(name, value)| (name.to_string(), reason_value(value))));
}

#[test]
fn golden_bytes() {
    let (id, pointer, passed) = (SubscriptionId::new(3), Seq::new(258), Seq::new(259));
    let pointer = Record::Pointer { id, pointer, passed }.encode();
    let wanted = b"\x18\0\x03\0\x85\x1c\0\0\x03\0\0\0\0\0\0\0\x02\x01\0\0\0\0\0\0\x03\x01\0\0\0\0\0\0";
    assert_eq!(pointer[..], wanted[..]);
    let subscription = Record::Subscription(recorded()).encode();
    let wanted =
        b"\x3a\0\x02\0\x85\x1c\0\0\x08\x07\x06\x05\x04\x03\x02\x01\xae\x12\0\0\0\0\0\0\xc0\x12\0\0\0\0\0\0\
        \xfb\xff\xff\xff\xff\xff\xff\xff\x03\x01\xaf\x12\0\0\0\0\0\0\xc1\x12\0\0\0\0\0\0\x11\0\0\0\0\0\0\0\
        \0\0\x02\0\x05\0audio\x08\0gr\xc3\xb6\xc3\x9fer\0\0\x01\0\x06\0opened\x07\0context\x02\0\x01\x09";
    assert_eq!(subscription[..], wanted[..]);
}

#[test]
fn what_is_encoded_decodes_and_nothing_shorter_does() {
    for record in records() {
        let bytes = record.encode();
        assert_eq!(Record::decode(&bytes), Ok(record));
        for len in 0..bytes.len() {
            assert!(matches!(Record::decode(&bytes[..len]), Err(SbeError::Short(_))), "{len}");
        }
    }
}

#[test]
fn a_newer_version_may_add_fields_to_a_block_and_what_is_foreign_is_refused() {
    let bytes = Record::NextId(7).encode().to_vec();
    let changed = |at: usize, value: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = value;
        bytes
    };
    let mut longer = changed(0, 10);
    longer[6] = 1;
    longer.extend([0xaa, 0xbb]);
    assert_eq!(Record::decode(&longer), Ok(Record::NextId(7)), "two more bytes, of version 1");
    assert_eq!(Record::decode(&changed(0, 4)), Err(SbeError::Short("block")), "a block shorter than ours");
    assert_eq!(Record::decode(&changed(4, 0x86)), Err(SbeError::Schema { found: 0x1c86, expected: 7_301 }));
    assert_eq!(Record::decode(&changed(2, 9)), Err(SbeError::Template { template: 9, version: 0, known: 0 }));
    let mut subscription = Record::Subscription(recorded()).encode().to_vec();
    for (at, field) in [(8 + 32, "presence"), (8 + 33, "gapReason")] {
        let before = core::mem::replace(&mut subscription[at], 4);
        assert_eq!(Record::decode(&subscription), Err(SbeError::Value { field, value: 4 }));
        subscription[at] = before;
    }
    let text = subscription.windows(5).position(|five| five == b"audio").unwrap();
    subscription[text] = 0xff;
    assert_eq!(Record::decode(&subscription), Err(SbeError::Text("sources")));
}
