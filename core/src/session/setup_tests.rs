use alloc::string::ToString;
use alloc::vec::Vec;

use roxmltree::Document;

use super::*;

const XML: &str = include_str!("../../schema/session.xml");

#[test]
fn its_bytes_are_golden() {
    let golden = b"\x00\x00\x01\x00\x86\x1c\x00\x00\x05\x00max/1\x03\x00\x00\x00a\x00b";
    assert_eq!(Setup { engine: "max/1", setup: b"a\0b" }.encode(), &golden[..]);
    assert_eq!(Setup::decode(golden), Ok(Setup { engine: "max/1", setup: b"a\0b" }));
}

#[test]
fn every_id_length_and_the_order_of_fields_are_the_schemas() {
    let document = Document::parse(XML).unwrap();
    let root = document.root_element();
    assert_eq!(root.attribute("id"), Some(&*SCHEMA.id.to_string()));
    assert_eq!(root.attribute("version"), Some(&*SCHEMA.version.to_string()));
    let messages: Vec<_> = root.children().filter(|node| node.tag_name().name() == "message").collect();
    let [message] = &messages[..] else { panic!("one message: {messages:?}") };
    assert_eq!(message.attribute("id"), Some(&*SETUP.id.to_string()));
    assert_eq!(message.attribute("blockLength"), Some(&*SETUP.block_len.to_string()));
    let fields: Vec<_> = message.children().filter(roxmltree::Node::is_element).collect();
    let named =
        |name: &str| document.descendants().find(|node| node.attribute("name") == Some(name)).unwrap();
    let mut bytes = &Setup { engine: "e", setup: b"s" }.encode()[8..];
    for (field, data) in fields.iter().zip([("engine", "e"), ("setup", "s")]) {
        assert_eq!((field.tag_name().name(), field.attribute("name")), ("data", Some(data.0)));
        let of_type = named(field.attribute("type").unwrap());
        let length = of_type.children().find(|node| node.attribute("name") == Some("length")).unwrap();
        let len = match length.attribute("primitiveType") {
            Some("uint16") => 2,
            Some("uint32") => 4,
            other => panic!("{other:?}"),
        };
        assert_eq!((bytes[0], &bytes[len..=len]), (1, data.1.as_bytes()), "{}", data.0);
        bytes = &bytes[len + 1..];
    }
    assert_eq!((fields.len(), bytes), (2, &[][..]));
}

#[test]
fn what_is_no_setup_is_refused_and_a_newer_one_is_read() {
    let bytes = Setup { engine: "engine", setup: b"setup" }.encode();
    for len in 0..bytes.len() {
        assert!(matches!(Setup::decode(&bytes[..len]), Err(SbeError::Short(_))), "{len}");
    }
    let changed = |at: usize, to: u8| {
        let mut bytes = bytes.to_vec();
        bytes[at] = to;
        Setup::decode(&bytes).map(|setup| setup.engine.to_string())
    };
    assert_eq!(changed(4, 0x85), Err(SbeError::Schema { found: 7_301, expected: 7_302 }));
    assert_eq!(changed(2, 2), Err(SbeError::Template { template: 2, version: 0, known: 0 }));
    assert_eq!(changed(10, 0xff), Err(SbeError::Text("engine")));
    let mut newer = bytes.to_vec();
    (newer[0], newer[6]) = (3, 1);
    newer.splice(8..8, *b"new");
    newer.extend(b"more");
    assert_eq!(Setup::decode(&newer), Ok(Setup { engine: "engine", setup: b"setup" }));
}
