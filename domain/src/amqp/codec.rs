//! Field tables to and from their bytes.

use super::{F32, F64, ShortString, Table, Value};

/// How deep tables and arrays may nest before decoding refuses. The outermost table is depth 1.
pub const MAX_DEPTH: usize = 64;

/// Why bytes are no field table or property list, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("at byte {at}: {fault}")]
pub struct DecodeError {
    /// Offset of the offending byte from the start, a table's length prefix included.
    pub at: usize,
    /// What is wrong there.
    pub fault: Fault,
}

/// What is wrong with the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A length points past the end of what holds it.
    #[error("ends early")]
    Truncated,
    /// A type tag that RabbitMQ doesn't know.
    #[error("unknown type tag {0:#04x}")]
    UnknownTag(u8),
    /// Deeper than [`MAX_DEPTH`].
    #[error("nested deeper than {MAX_DEPTH}")]
    TooDeep,
    /// Bytes are left over at the end.
    #[error("bytes after the end")]
    Trailing,
    /// A flag of a property list that names no property kept there.
    #[error("unknown property flag")]
    UnknownProperty,
}

impl Table {
    /// The table's wire bytes: a u32 length, then its fields.
    ///
    /// Lengths are u32 on the wire; a value of 4 GiB or more cannot have come from a broker, and its length is cut.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode_into(&mut out);
        out
    }

    /// The length of [`Table::encode`], without making it.
    pub fn encoded_len(&self) -> usize {
        4 + self.iter().map(|(key, value)| 1 + key.as_bytes().len() + 1 + value.payload_len()).sum::<usize>()
    }

    fn encode_into(&self, out: &mut Vec<u8>) {
        prefixed(out, |out| {
            for (key, value) in self.iter() {
                out.push(key.as_bytes().len() as u8);
                out.extend_from_slice(key.as_bytes());
                value.encode_into(out);
            }
        });
    }

    /// Reads a table from its wire bytes, length prefix first. Never panics; nesting is bounded by [`MAX_DEPTH`].
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let table = reader.table(1)?;
        reader.finish()?;
        Ok(table)
    }
}

impl Value {
    fn encode_into(&self, out: &mut Vec<u8>) {
        out.push(self.tag());
        match self {
            Self::Bool(b) => out.push(u8::from(*b)),
            Self::I8(n) => out.extend_from_slice(&n.to_be_bytes()),
            Self::U8(n) => out.push(*n),
            Self::I16(n) => out.extend_from_slice(&n.to_be_bytes()),
            Self::U16(n) => out.extend_from_slice(&n.to_be_bytes()),
            Self::I32(n) => out.extend_from_slice(&n.to_be_bytes()),
            Self::U32(n) => out.extend_from_slice(&n.to_be_bytes()),
            Self::I64(n) => out.extend_from_slice(&n.to_be_bytes()),
            Self::F32(n) => out.extend_from_slice(&n.0.to_be_bytes()),
            Self::F64(n) => out.extend_from_slice(&n.0.to_be_bytes()),
            Self::Decimal { scale, value } => {
                out.push(*scale);
                out.extend_from_slice(&value.to_be_bytes());
            }
            Self::LongString(bytes) | Self::Bytes(bytes) => prefixed(out, |out| out.extend_from_slice(bytes)),
            Self::Array(items) => prefixed(out, |out| items.iter().for_each(|item| item.encode_into(out))),
            Self::Timestamp(n) => out.extend_from_slice(&n.to_be_bytes()),
            Self::Table(table) => table.encode_into(out),
            Self::Void => {}
        }
    }

    fn payload_len(&self) -> usize {
        match self {
            Self::Bool(_) | Self::I8(_) | Self::U8(_) => 1,
            Self::I16(_) | Self::U16(_) => 2,
            Self::I32(_) | Self::U32(_) | Self::F32(_) => 4,
            Self::I64(_) | Self::F64(_) | Self::Timestamp(_) => 8,
            Self::Decimal { .. } => 5,
            Self::LongString(bytes) | Self::Bytes(bytes) => 4 + bytes.len(),
            Self::Array(items) => 4 + items.iter().map(|item| 1 + item.payload_len()).sum::<usize>(),
            Self::Table(table) => table.encoded_len(),
            Self::Void => 0,
        }
    }

    /// RabbitMQ's type tag.
    pub fn tag(&self) -> u8 {
        match self {
            Self::Bool(_) => b't',
            Self::I8(_) => b'b',
            Self::U8(_) => b'B',
            Self::I16(_) => b's',
            Self::U16(_) => b'u',
            Self::I32(_) => b'I',
            Self::U32(_) => b'i',
            Self::I64(_) => b'l',
            Self::F32(_) => b'f',
            Self::F64(_) => b'd',
            Self::Decimal { .. } => b'D',
            Self::LongString(_) => b'S',
            Self::Bytes(_) => b'x',
            Self::Array(_) => b'A',
            Self::Timestamp(_) => b'T',
            Self::Table(_) => b'F',
            Self::Void => b'V',
        }
    }
}

/// Writes what `content` writes, with its length as u32 before it.
fn prefixed(out: &mut Vec<u8>, content: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    content(out);
    let len = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&len.to_be_bytes());
}

pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// End of the innermost table or array being read.
    end: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, end: bytes.len() }
    }

    /// Refuses bytes that are left over.
    pub(super) fn finish(self) -> Result<(), DecodeError> {
        if self.at == self.bytes.len() { Ok(()) } else { Err(self.fault(Fault::Trailing)) }
    }

    pub(super) fn short(&mut self) -> Result<ShortString, DecodeError> {
        let [len] = self.array()?;
        // A u8 length can't pass the limit of a short string.
        Ok(ShortString(self.take(len.into())?.to_vec()))
    }

    fn fault(&self, fault: Fault) -> DecodeError {
        DecodeError { at: self.at, fault }
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        if len > self.end - self.at {
            return Err(self.fault(Fault::Truncated));
        }
        let taken = &self.bytes[self.at..self.at + len];
        self.at += len;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    fn long(&mut self) -> Result<Vec<u8>, DecodeError> {
        let len = u32::from_be_bytes(self.array()?) as usize;
        Ok(self.take(len)?.to_vec())
    }

    /// Reads items until the u32-prefixed region that starts here is used up.
    fn region<T>(
        &mut self,
        depth: usize,
        mut item: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        if depth > MAX_DEPTH {
            return Err(self.fault(Fault::TooDeep));
        }
        let len = u32::from_be_bytes(self.array()?) as usize;
        if len > self.end - self.at {
            return Err(self.fault(Fault::Truncated));
        }
        let outer = std::mem::replace(&mut self.end, self.at + len);
        let mut items = Vec::new();
        while self.at < self.end {
            items.push(item(self)?);
        }
        self.end = outer;
        Ok(items)
    }

    fn table(&mut self, depth: usize) -> Result<Table, DecodeError> {
        let fields = self.region(depth, |reader| Ok((reader.short()?, reader.value(depth)?)))?;
        Ok(fields.into_iter().collect())
    }

    fn value(&mut self, depth: usize) -> Result<Value, DecodeError> {
        let at = self.at;
        let [tag] = self.array()?;
        Ok(match tag {
            b't' => Value::Bool(self.array::<1>()? != [0]),
            b'b' => Value::I8(i8::from_be_bytes(self.array()?)),
            b'B' => Value::U8(u8::from_be_bytes(self.array()?)),
            b's' | b'U' => Value::I16(i16::from_be_bytes(self.array()?)),
            b'u' => Value::U16(u16::from_be_bytes(self.array()?)),
            b'I' => Value::I32(i32::from_be_bytes(self.array()?)),
            b'i' => Value::U32(u32::from_be_bytes(self.array()?)),
            b'l' | b'L' => Value::I64(i64::from_be_bytes(self.array()?)),
            b'f' => Value::F32(F32(u32::from_be_bytes(self.array()?))),
            b'd' => Value::F64(F64(u64::from_be_bytes(self.array()?))),
            b'D' => {
                let [scale] = self.array()?;
                Value::Decimal { scale, value: u32::from_be_bytes(self.array()?) }
            }
            b'S' => Value::LongString(self.long()?),
            b'x' => Value::Bytes(self.long()?),
            b'A' => Value::Array(self.region(depth + 1, |reader| reader.value(depth + 1))?),
            b'T' => Value::Timestamp(u64::from_be_bytes(self.array()?)),
            b'F' => Value::Table(self.table(depth + 1)?),
            b'V' => Value::Void,
            unknown => return Err(DecodeError { at, fault: Fault::UnknownTag(unknown) }),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::strategy;
    use super::*;

    fn one(value: Value) -> Table {
        Table::from_iter([(ShortString::new("k").unwrap(), value)])
    }

    #[test]
    fn tags_are_those_of_rabbitmq() {
        let cases: &[(&[u8], Value)] = &[
            (b"t\x01", Value::Bool(true)),
            (b"b\xff", Value::I8(-1)),
            (b"B\xff", Value::U8(255)),
            (b"s\xff\xfe", Value::I16(-2)),
            (b"u\xff\xfe", Value::U16(65534)),
            (b"I\xff\xff\xff\xff", Value::I32(-1)),
            (b"i\xff\xff\xff\xff", Value::U32(u32::MAX)),
            (b"l\x00\x20\x00\x00\x00\x00\x00\x01", Value::I64((1 << 53) + 1)),
            (b"f\x3f\xc0\x00\x00", Value::F32(1.5.into())),
            (b"d\x7f\xf0\x00\x00\x00\x00\x00\x00", Value::F64(f64::INFINITY.into())),
            (b"D\x02\x00\x00\x00\x7d", Value::Decimal { scale: 2, value: 125 }),
            (b"S\x00\x00\x00\x02\x00\xff", Value::LongString(vec![0, 255])),
            (b"x\x00\x00\x00\x01\x80", Value::Bytes(vec![0x80])),
            (b"A\x00\x00\x00\x03V\x74\x00", Value::Array(vec![Value::Void, Value::Bool(false)])),
            (b"T\x00\x00\x00\x00\x00\x00\x00\x2a", Value::Timestamp(42)),
            (b"F\x00\x00\x00\x00", Value::Table(Table::new())),
            (b"V", Value::Void),
        ];
        for (wire, value) in cases {
            let mut bytes = ((wire.len() + 2) as u32).to_be_bytes().to_vec();
            bytes.extend_from_slice(b"\x01k");
            bytes.extend_from_slice(wire);
            assert_eq!(Table::decode(&bytes), Ok(one(value.clone())), "{value:?}");
            assert_eq!(one(value.clone()).encode(), bytes, "{value:?}");
        }
    }

    #[test]
    fn foreign_tags_for_the_same_types_are_read() {
        assert_eq!(Table::decode(b"\x00\x00\x00\x05\x01kU\x00\x07"), Ok(one(Value::I16(7))));
        assert_eq!(Table::decode(b"\x00\x00\x00\x0b\x01kL\0\0\0\0\0\0\0\x07"), Ok(one(Value::I64(7))));
    }

    #[test]
    fn faults_say_where() {
        let cases: &[(&[u8], usize, Fault)] = &[
            (b"", 0, Fault::Truncated),
            (b"\x00\x00\x00\x05\x01k", 4, Fault::Truncated),
            (b"\x00\x00\x00\x03\x01kq", 6, Fault::UnknownTag(b'q')),
            (b"\x00\x00\x00\x00!", 4, Fault::Trailing),
            // the inner table claims more than the outer one holds, though the buffer has it
            (b"\x00\x00\x00\x07\x01kF\x00\x00\x00\x01\x00", 11, Fault::Truncated),
        ];
        for (bytes, at, fault) in cases {
            assert_eq!(Table::decode(bytes), Err(DecodeError { at: *at, fault: *fault }), "{bytes:?}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |depth: usize| (1..depth).fold(Table::new(), |inner, _| one(Value::Table(inner)));
        assert_eq!(Table::decode(&nested(MAX_DEPTH).encode()), Ok(nested(MAX_DEPTH)));
        let error = Table::decode(&nested(MAX_DEPTH + 1).encode()).unwrap_err();
        assert_eq!(error.fault, Fault::TooDeep);
        // 20 000 arrays, each claiming to fill the rest: refused without a deep stack
        let mut hostile = Vec::new();
        for left in (0..20_000u32).rev() {
            hostile.push(b'A');
            hostile.extend_from_slice(&(left * 5).to_be_bytes());
        }
        let mut bytes = ((hostile.len() + 2) as u32).to_be_bytes().to_vec();
        bytes.extend_from_slice(b"\x01k");
        bytes.extend(hostile);
        assert_eq!(Table::decode(&bytes).unwrap_err().fault, Fault::TooDeep);
    }

    #[test]
    fn order_and_equal_keys_are_kept() {
        let key = |k: &str| ShortString::new(k).unwrap();
        let table = Table::from_iter([
            (key("b"), Value::I8(1)),
            (key(""), Value::Void),
            (key("a"), Value::I8(2)),
            (key("b"), Value::I8(3)),
            (key("B"), Value::I8(4)),
        ]);
        assert_eq!(Table::decode(&table.encode()), Ok(table.clone()));
        assert_eq!(table.get(b"b"), Some(&Value::I8(1)));
        let sorted: Vec<_> = table.sorted().into_iter().map(|(k, v)| (k.into_bytes(), v)).collect();
        let want =
            [("", Value::Void), ("B", Value::I8(4)), ("a", Value::I8(2)), ("b", Value::I8(1)), ("b", Value::I8(3))];
        assert_eq!(sorted, want.map(|(k, v)| (k.as_bytes().to_vec(), v)));
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(table in strategy::table()) {
            let bytes = table.encode();
            prop_assert_eq!(bytes.len(), table.encoded_len());
            prop_assert_eq!(Table::decode(&bytes), Ok(table));
        }

        #[test]
        fn any_bytes_decode_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(table) = Table::decode(&bytes) {
                prop_assert_eq!(Table::decode(&table.encode()), Ok(table));
            }
        }

        #[test]
        fn damaged_tables_decode_without_panic(
            table in strategy::table(), at in any::<prop::sample::Index>(), with in any::<u8>(), cut in any::<prop::sample::Index>(),
        ) {
            let mut bytes = table.encode();
            let at = at.index(bytes.len());
            bytes[at] = with;
            bytes.truncate(cut.index(bytes.len()) + 1);
            if let Ok(table) = Table::decode(&bytes) {
                prop_assert_eq!(Table::decode(&table.encode()), Ok(table));
            }
        }
    }
}
