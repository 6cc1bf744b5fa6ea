//! The messages of Chakra's schema 1.0 in protobuf's wire format, each after its length.
//!
//! Only what traces hold is written: `GlobalMetadata`, `Node` and `AttributeProto` with numbers of
//! 64 bits, lists of them, flags and texts.

/// What a node does, as the schema numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// Computation.
    Compute = 4,
    /// A message that leaves.
    Send = 5,
    /// A message that arrives.
    Receive = 6,
    /// An exchange of a group.
    Collective = 7,
}

/// A named value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    name: String,
    value: Value,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Number(u64),
    Numbers(Vec<u64>),
    Flag(bool),
    Text(String),
}

/// A node of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its number.
    pub id: u64,
    /// What a reader knows it by.
    pub name: String,
    /// What it does.
    pub kind: NodeKind,
    /// The nodes that it waits for.
    pub after: Vec<u64>,
    /// How long it takes; 0 where a simulator is to say.
    pub duration_micros: u64,
    /// All else.
    pub attributes: Vec<Attribute>,
}

impl Attribute {
    /// A number (`int64_val`).
    pub fn number(name: &str, value: u64) -> Self {
        Self { name: name.into(), value: Value::Number(value) }
    }

    /// Numbers (`uint64_list`).
    pub fn numbers(name: &str, values: &[u64]) -> Self {
        Self { name: name.into(), value: Value::Numbers(values.to_vec()) }
    }

    /// Yes or no (`bool_val`).
    pub fn flag(name: &str, value: bool) -> Self {
        Self { name: name.into(), value: Value::Flag(value) }
    }

    /// A text (`string_val`).
    pub fn text(name: &str, value: &str) -> Self {
        Self { name: name.into(), value: Value::Text(value.into()) }
    }

    fn message(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        field_bytes(&mut bytes, 1, self.name.as_bytes());
        match &self.value {
            // A member of a union is written even where it is the default.
            Value::Number(number) => field_number(&mut bytes, 9, *number),
            Value::Flag(flag) => field_number(&mut bytes, 27, u64::from(*flag)),
            Value::Text(text) => field_bytes(&mut bytes, 29, text.as_bytes()),
            Value::Numbers(numbers) => {
                let mut list = Vec::new();
                packed(&mut list, 1, numbers);
                field_bytes(&mut bytes, 14, &list);
            }
        }
        bytes
    }
}

impl Node {
    /// A node that computes nothing yet.
    pub fn new(name: &str, after: &[u64]) -> Self {
        Self {
            id: 0,
            name: name.to_owned(),
            kind: NodeKind::Compute,
            after: after.to_vec(),
            duration_micros: 0,
            attributes: Vec::new(),
        }
    }

    /// Writes it after its length.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut bytes = Vec::new();
        if self.id > 0 {
            field_number(&mut bytes, 1, self.id);
        }
        field_bytes(&mut bytes, 2, self.name.as_bytes());
        field_number(&mut bytes, 3, self.kind as u64);
        packed(&mut bytes, 5, &self.after);
        if self.duration_micros > 0 {
            field_number(&mut bytes, 7, self.duration_micros);
        }
        for attribute in &self.attributes {
            field_bytes(&mut bytes, 10, &attribute.message());
        }
        delimited(out, &bytes);
    }
}

/// The first message of a file.
pub fn metadata(attributes: &[Attribute]) -> Vec<u8> {
    let mut bytes = Vec::new();
    field_bytes(&mut bytes, 1, b"1.0");
    for attribute in attributes {
        field_bytes(&mut bytes, 2, &attribute.message());
    }
    let mut out = Vec::new();
    delimited(&mut out, &bytes);
    out
}

/// How the schema numbers an exchange; `None` for messages.
pub fn collective(kind: &str) -> Option<u64> {
    match kind {
        "all_reduce" => Some(0),
        "all_gather" => Some(2),
        "all_to_all" => Some(6),
        "reduce_scatter" => Some(7),
        _ => None,
    }
}

fn delimited(out: &mut Vec<u8>, message: &[u8]) {
    varint(out, message.len() as u64);
    out.extend_from_slice(message);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let [low, ..] = value.to_le_bytes();
        value >>= 7;
        if value == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

/// A field that is a number.
fn field_number(out: &mut Vec<u8>, field: u64, value: u64) {
    varint(out, field << 3);
    varint(out, value);
}

/// A field that has a length.
fn field_bytes(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    varint(out, field << 3 | 2);
    delimited(out, bytes);
}

/// A field of numbers without their tags; nothing where there are none.
fn packed(out: &mut Vec<u8>, field: u64, numbers: &[u64]) {
    if numbers.is_empty() {
        return;
    }
    let mut list = Vec::new();
    for &number in numbers {
        varint(&mut list, number);
    }
    field_bytes(out, field, &list);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_seven_bits_at_a_time() {
        for (number, bytes) in
            [(0, vec![0]), (1, vec![1]), (127, vec![127]), (128, vec![128, 1]), (300, vec![172, 2])]
        {
            let mut out = Vec::new();
            varint(&mut out, number);
            assert_eq!(out, bytes, "{number}");
        }
    }

    #[test]
    fn a_node_is_the_bytes_that_the_schema_says() {
        let node = Node {
            id: 3,
            kind: NodeKind::Collective,
            attributes: vec![Attribute::number("s", 300), Attribute::flag("f", false)],
            ..Node::new("n", &[1, 2])
        };
        let mut out = Vec::new();
        node.write(&mut out);
        let said = [
            31, 8, 3, 18, 1, b'n', 24, 7, 42, 2, 1, 2, 82, 6, 10, 1, b's', 72, 172, 2, 82, 6, 10,
            1, b'f', 216, 1, 0,
        ];
        assert_eq!(out[1..], said[1..], "{out:?}");
        assert_eq!(usize::from(out[0]), out.len() - 1);
    }
}
