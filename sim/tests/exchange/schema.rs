//! The codec is the schema's, and the schema the codec's: both are described in the same words, line by line.

use std::collections::BTreeSet;

use roxmltree::{Document, Node};
use strandline_sim::exchange::{
    CancelReason, Command, Event, ExchangeSetup, MessageLayout, OrderKind, Phase, Refusal, SCHEMA, Side,
    TimeInForce,
};

const XML: &str = include_str!("../../schema/exchange.xml");

type Described = Result<Vec<String>, String>;

/// What the codec writes and reads.
fn codec() -> Vec<String> {
    let mut lines = vec![
        format!("schema {} version {} littleEndian", SCHEMA.id, SCHEMA.version),
        // These three are what the shared codec does, and the golden bytes show it.
        "composite messageHeader: blockLength uint16, templateId uint16, schemaId uint16, version uint16"
            .into(),
        "composite groupSizeEncoding: blockLength uint16, numInGroup uint16 to 65535".into(),
        "composite varString: length uint16 to 65535, varData UTF-8".into(),
        values("Side", Side::ALL),
        values("OrderKind", OrderKind::ALL),
        values("TimeInForce", TimeInForce::ALL),
        values("Phase", Phase::ALL),
        values("CancelReason", CancelReason::ALL),
        values("Refusal", Refusal::ALL),
    ];
    let [setup, instruments] = ExchangeSetup::layouts();
    lines.extend(layout("message", &setup));
    lines.extend(layout("group", &instruments));
    for message in Command::layouts().iter().chain(&Event::layouts()) {
        lines.extend(layout("message", message));
    }
    lines
}

fn values<T>(name: &str, all: &[(&str, u8, T)]) -> String {
    let values: Vec<_> = all.iter().map(|(name, number, _)| format!("{name} {number}")).collect();
    format!("enum {name}: {}", values.join(", "))
}

fn layout<'a>(what: &str, of: &'a MessageLayout) -> impl Iterator<Item = String> + use<'a> {
    let MessageLayout { name, id, block_len, fields } = of;
    let fields = fields.iter().map(move |field| {
        let of = format!("{name}: {} {}", camel_case(field.name), field.type_name);
        field.offset.map_or_else(|| format!("{of} behind the block"), |offset| format!("{of} at {offset}"))
    });
    [format!("{what} {id} {name}, block of {block_len}")].into_iter().chain(fields)
}

fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| name + &word[..1].to_uppercase() + &word[1..])
}

/// What the schema says, or why it is none that the codec can be of.
fn schema(xml: &str) -> Described {
    let document = Document::parse(xml).map_err(|error| error.to_string())?;
    let root = document.root_element();
    only(root, &["package", "id", "version", "semanticVersion", "byteOrder"])?;
    let mut lines = vec![format!(
        "schema {} version {} {}",
        attribute(root, "id")?,
        attribute(root, "version")?,
        attribute(root, "byteOrder")?
    )];
    let mut types = Types::default();
    let mut ids = BTreeSet::new();
    for node in root.children().filter(Node::is_element) {
        match node.tag_name().name() {
            "types" => lines.extend(types.read(node)?),
            "message" => {
                only(node, &["name", "id", "blockLength"])?;
                new(&mut ids, attribute(node, "id")?)?;
                let mut fields = BTreeSet::new();
                lines.extend(block("message", node, &types, &mut fields)?);
            }
            other => return Err(format!("{other} is not known")),
        }
    }
    Ok(lines)
}

/// The enums of the schema.
#[derive(Default)]
struct Types {
    enums: BTreeSet<String>,
}

impl Types {
    fn read(&mut self, types: Node<'_, '_>) -> Described {
        let (mut names, mut lines) = (BTreeSet::new(), Vec::new());
        for node in types.children().filter(Node::is_element) {
            let name = attribute(node, "name")?;
            new(&mut names, name)?;
            lines.push(match node.tag_name().name() {
                "composite" => composite(node, name)?,
                "enum" => {
                    self.enums.insert(name.to_owned());
                    one_of(node, name)?
                }
                other => return Err(format!("{other} is not known")),
            });
        }
        Ok(lines)
    }

    fn size(&self, name: &str) -> Result<u16, String> {
        match name {
            "uint16" => Ok(2),
            "uint32" => Ok(4),
            "uint64" | "int64" => Ok(8),
            name if self.enums.contains(name) => Ok(1),
            name => Err(format!("no field has the type {name}")),
        }
    }
}

fn composite(node: Node<'_, '_>, name: &str) -> Result<String, String> {
    only(node, &["name"])?;
    let mut members = Vec::new();
    for member in node.children().filter(Node::is_element) {
        only(member, &["name", "primitiveType", "maxValue", "length", "characterEncoding"])?;
        let kind = match member.attribute("length") {
            None => attribute(member, "primitiveType")?,
            Some("0") if member.attribute("primitiveType") == Some("uint8") => {
                attribute(member, "characterEncoding")?
            }
            Some(other) => return Err(format!("{name} has a member of length {other}")),
        };
        // By the standard it would be one less than the type can say.
        let most = member.attribute("maxValue").map(|most| format!(" to {most}")).unwrap_or_default();
        members.push(format!("{} {kind}{most}", attribute(member, "name")?));
    }
    Ok(format!("composite {name}: {}", members.join(", ")))
}

fn one_of(node: Node<'_, '_>, name: &str) -> Result<String, String> {
    only(node, &["name", "encodingType"])?;
    if attribute(node, "encodingType")? != "uint8" {
        return Err(format!("{name} is not one byte"));
    }
    let (mut names, mut numbers, mut values) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for value in node.children().filter(Node::is_element) {
        only(value, &["name"])?;
        let (value, number) = (attribute(value, "name")?, value.text().unwrap_or_default());
        new(&mut names, value)?;
        new(&mut numbers, number)?;
        values.push(format!("{value} {number}"));
    }
    Ok(format!("enum {name}: {}", values.join(", ")))
}

/// A message or a group. Ids of fields are new in the whole message.
fn block<'a>(what: &str, node: Node<'a, '_>, types: &Types, ids: &mut BTreeSet<&'a str>) -> Described {
    let (name, len) = (attribute(node, "name")?, attribute(node, "blockLength")?);
    let (mut lines, mut offset) =
        (vec![format!("{what} {} {name}, block of {len}", attribute(node, "id")?)], 0);
    // Fields, then groups, then texts: the order of the standard.
    let mut reached = 0;
    for member in node.children().filter(Node::is_element) {
        new(ids, attribute(member, "id")?)?;
        let tag = member.tag_name().name();
        let place = match tag {
            "field" => {
                only(member, &["name", "id", "type"])?;
                let (field, kind) = (attribute(member, "name")?, attribute(member, "type")?);
                lines.push(format!("{name}: {field} {kind} at {offset}"));
                offset += types.size(kind)?;
                1
            }
            "group" => {
                only(member, &["name", "id", "blockLength", "dimensionType"])?;
                if attribute(member, "dimensionType")? != "groupSizeEncoding" {
                    return Err(format!("{name} has a group of another kind"));
                }
                lines.extend(block("group", member, types, ids)?);
                2
            }
            "data" => {
                only(member, &["name", "id", "type"])?;
                let (text, kind) = (attribute(member, "name")?, attribute(member, "type")?);
                lines.push(format!("{name}: {text} {kind} behind the block"));
                3
            }
            other => return Err(format!("{other} is not known")),
        };
        if place < reached {
            return Err(format!("{name}: a {tag} is in the wrong place"));
        }
        reached = place;
    }
    if offset.to_string() == len { Ok(lines) } else { Err(format!("{name}: fields of {offset} in {len}")) }
}

fn attribute<'a>(node: Node<'a, '_>, name: &str) -> Result<&'a str, String> {
    node.attribute(name).ok_or_else(|| format!("{node:?} has no {name}"))
}

/// An attribute that this test does not understand may change what the bytes are.
fn only(node: Node<'_, '_>, known: &[&str]) -> Result<(), String> {
    let other = node.attributes().find(|attribute| !known.contains(&attribute.name()));
    other.map_or(Ok(()), |other| Err(format!("{node:?}: the attribute {} is not known", other.name())))
}

fn new<'a>(seen: &mut BTreeSet<&'a str>, what: &'a str) -> Result<(), String> {
    if seen.insert(what) { Ok(()) } else { Err(format!("{what} is there twice")) }
}

#[test]
fn the_codec_and_the_schema_say_the_same() {
    assert_eq!(schema(XML).unwrap(), codec());
}

#[test]
fn no_message_is_both_a_command_and_an_event() {
    let mut all: Vec<_> = Command::layouts().into_iter().chain(Event::layouts()).collect();
    let [setup, _] = ExchangeSetup::layouts();
    all.push(setup);
    let ids: BTreeSet<_> = all.iter().map(|layout| layout.id).collect();
    let names: BTreeSet<_> = all.iter().map(|layout| layout.name).collect();
    assert_eq!((ids.len(), names.len()), (all.len(), all.len()));
}

/// What may be wrong, as a part of the schema and what stands there instead.
const PLANTED: [(&str, &str, &str); 37] = [
    ("the schema's id", "id=\"7310\"", "id=\"7311\""),
    ("its version", "version=\"0\" s", "version=\"1\" s"),
    ("its byte order", "littleEndian", "bigEndian"),
    ("the header's order", "<type name=\"templateId\" primitiveType=\"uint16\"/>", ""),
    ("a header's type", "\"schemaId\" primitiveType=\"uint16\"", "\"schemaId\" primitiveType=\"uint32\""),
    (
        "a group's header",
        "name=\"numInGroup\" primitiveType=\"uint16\"",
        "name=\"numInGroup\" primitiveType=\"uint8\"",
    ),
    ("a text's length", "\"length\" primitiveType=\"uint16\"", "\"length\" primitiveType=\"uint32\""),
    ("a group's longest", " maxValue=\"65535\"", ""),
    (
        "a text's longest",
        "\"length\" primitiveType=\"uint16\" maxValue=\"65535\"",
        "\"length\" primitiveType=\"uint16\"",
    ),
    ("a text's encoding", "UTF-8\"/>", "ASCII\"/>"),
    ("a value's number", "\"ForeignOrder\">12", "\"ForeignOrder\">13"),
    ("a value's name", "\"OutsideBand\"", "\"OffBand\""),
    ("a number twice", "\"Sell\">2", "\"Sell\">1"),
    ("a value's name twice", "\"Market\">2", "\"Limit\">2"),
    ("a value that is missing", "<validValue name=\"Open\">2</validValue>", ""),
    (
        "a value too many",
        "\"Open\">2</validValue>",
        "\"Open\">2</validValue><validValue name=\"Auction\">3</validValue>",
    ),
    ("an enum's size", "\"Phase\" encodingType=\"uint8\"", "\"Phase\" encodingType=\"uint16\""),
    (
        "an enum too many",
        "<enum name=\"Phase\"",
        "<enum name=\"Empty\" encodingType=\"uint8\"/><enum name=\"Phase\"",
    ),
    ("an enum twice", "<enum name=\"Phase\"", "<enum name=\"Side\""),
    ("a message's id", "\"Tick\" id=\"11\"", "\"Tick\" id=\"17\""),
    ("a message's id twice", "\"Resumed\" id=\"39\"", "\"Resumed\" id=\"38\""),
    ("a message's name", "\"Settled\" id", "\"Closed\" id"),
    ("a message's block", "id=\"32\" blockLength=\"69\"", "id=\"32\" blockLength=\"70\""),
    (
        "a message too many",
        "</sbe:messageSchema>",
        "<sbe:message name=\"Bye\" id=\"40\" blockLength=\"0\"/></sbe:messageSchema>",
    ),
    ("a field's name", "\"takerLeft\"", "\"takerRest\""),
    ("a field's type", "\"price\" id=\"5\" type=\"int64\"", "\"price\" id=\"5\" type=\"uint64\""),
    (
        "a field's type of another size",
        "\"opensAt\" id=\"2\" type=\"uint32\"",
        "\"opensAt\" id=\"2\" type=\"uint64\"",
    ),
    ("a field's enum", "\"refusal\" id=\"2\" type=\"Refusal\"", "\"refusal\" id=\"2\" type=\"CancelReason\""),
    ("a field's id twice", "\"makerLeft\" id=\"10\"", "\"makerLeft\" id=\"9\""),
    ("a field that may be absent", "name=\"phase\" id", "name=\"phase\" presence=\"optional\" id"),
    ("a field elsewhere", "name=\"phase\" id", "name=\"phase\" offset=\"9\" id"),
    (
        "a text too many",
        "<data name=\"symbol\"",
        "<data name=\"isin\" id=\"11\" type=\"varString\"/><data name=\"symbol\"",
    ),
    ("a text's name", "\"symbol\"", "\"name\""),
    ("a group's id", "\"instruments\" id=\"4\"", "\"instruments\" id=\"11\""),
    ("a group's block", "blockLength=\"28\"", "blockLength=\"32\""),
    ("a group's kind", "dimensionType=\"groupSizeEncoding\"", "dimensionType=\"varString\""),
    ("a field before others", "<field name=\"tick\"", "<data name=\"tick\""),
];

/// Two lines that change places.
const SWAPPED: [(&str, &str); 5] = [
    ("<field name=\"taker\" id=\"7\" type=\"uint64\"/>", "<field name=\"maker\" id=\"9\" type=\"uint64\"/>"),
    (
        "<data name=\"trader\" id=\"8\" type=\"varString\"/>",
        "<data name=\"reference\" id=\"9\" type=\"varString\"/>",
    ),
    ("<field name=\"tick\" id=\"8\" type=\"uint32\"/>", "<field name=\"lot\" id=\"9\" type=\"uint32\"/>"),
    (
        "<type name=\"blockLength\" primitiveType=\"uint16\"/>",
        "<type name=\"templateId\" primitiveType=\"uint16\"/>",
    ),
    ("<validValue name=\"Day\">1", "<validValue name=\"ImmediateOrCancel\">3"),
];

#[test]
fn a_difference_of_any_kind_is_seen() {
    for (what, from, to) in PLANTED {
        assert!(XML.contains(from), "{what}: {from} is not in the schema");
        let planted = XML.replacen(from, to, 1);
        assert!(Document::parse(&planted).is_ok(), "{what}: it is a schema, but not this one");
        assert_ne!(schema(&planted), Ok(codec()), "{what}");
    }
    for (one, other) in SWAPPED {
        assert!(XML.contains(one) && XML.contains(other), "{one} or {other} is not in the schema");
        let swapped = XML.replacen(one, "<!-- here -->", 1).replacen(other, one, 1);
        assert_ne!(schema(&swapped.replacen("<!-- here -->", other, 1)), Ok(codec()), "{one} and {other}");
    }
    let (before, rest) = XML.split_once("<sbe:message name=\"Resume\"").unwrap();
    let (_, after) = rest.split_once("</sbe:message>").unwrap();
    assert_ne!(schema(&format!("{before}{after}")), Ok(codec()), "a message that is missing");
}
