//! The readable projection: what pages and the API show of AMQP values. Types stay visible; nothing here is ever
//! parsed back into a message (the encoded bytes are the evidence).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::{Table, Value};

/// Text where the bytes are UTF-8, with control characters made visible; base64 elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum ReadableText {
    /// UTF-8, as [`visible`] writes it.
    Text(String),
    /// Bytes that are no UTF-8.
    Bytes {
        /// Standard base64 with padding.
        b64: String,
    },
}

impl ReadableText {
    /// The projection of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(visible(text)),
            Err(_) => Self::Bytes { b64: STANDARD.encode(bytes) },
        }
    }
}

impl std::fmt::Display for ReadableText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Bytes { b64 } => write!(f, "b64:{b64}"),
        }
    }
}

/// One field: name, type and value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReadableField {
    /// The key; keys may repeat.
    pub name: ReadableText,
    /// The value with its type.
    #[serde(flatten)]
    #[cfg_attr(feature = "openapi", schema(no_recursion))]
    pub value: ReadableValue,
}

/// A value with its AMQP type. Numbers that JSON can't hold exactly (64 bits, floats, decimals) are strings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "type", content = "value", rename_all = "snake_case")]
pub enum ReadableValue {
    /// `t`
    Bool(bool),
    /// `b`
    Int8(i8),
    /// `B`
    Uint8(u8),
    /// `s`
    Int16(i16),
    /// `u`
    Uint16(u16),
    /// `I`
    Int32(i32),
    /// `i`
    Uint32(u32),
    /// `l`, in decimal
    Int64(String),
    /// `f`, the shortest decimal that reads back the same; `NaN`, `inf`, `-inf`
    Float(String),
    /// `d`, likewise
    Double(String),
    /// `D`, in decimal with its scale
    Decimal(String),
    /// `S`
    LongString(ReadableText),
    /// `x`, base64
    Bytes(String),
    /// `A`
    #[cfg_attr(feature = "openapi", schema(no_recursion))]
    Array(Vec<ReadableValue>),
    /// `T`, seconds since 1970 in decimal
    Timestamp(String),
    /// `F`
    #[cfg_attr(feature = "openapi", schema(no_recursion))]
    Table(Vec<ReadableField>),
    /// `V`
    Void,
}

impl Table {
    /// The fields as pages show them, in the order they arrived.
    pub fn readable(&self) -> Vec<ReadableField> {
        self.iter()
            .map(|(key, value)| ReadableField { name: ReadableText::of(key.as_bytes()), value: value.readable() })
            .collect()
    }
}

impl Value {
    /// The value as pages show it.
    pub fn readable(&self) -> ReadableValue {
        match self {
            Self::Bool(b) => ReadableValue::Bool(*b),
            Self::I8(n) => ReadableValue::Int8(*n),
            Self::U8(n) => ReadableValue::Uint8(*n),
            Self::I16(n) => ReadableValue::Int16(*n),
            Self::U16(n) => ReadableValue::Uint16(*n),
            Self::I32(n) => ReadableValue::Int32(*n),
            Self::U32(n) => ReadableValue::Uint32(*n),
            Self::I64(n) => ReadableValue::Int64(n.to_string()),
            Self::F32(n) => ReadableValue::Float(n.get().to_string()),
            Self::F64(n) => ReadableValue::Double(n.get().to_string()),
            Self::Decimal { scale, value } => ReadableValue::Decimal(decimal(*scale, *value)),
            Self::LongString(bytes) => ReadableValue::LongString(ReadableText::of(bytes)),
            Self::Bytes(bytes) => ReadableValue::Bytes(STANDARD.encode(bytes)),
            Self::Array(items) => ReadableValue::Array(items.iter().map(Value::readable).collect()),
            Self::Timestamp(n) => ReadableValue::Timestamp(n.to_string()),
            Self::Table(table) => ReadableValue::Table(table.readable()),
            Self::Void => ReadableValue::Void,
        }
    }
}

fn decimal(scale: u8, value: u32) -> String {
    let scale = usize::from(scale);
    let digits = format!("{value:0>width$}", width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") }
}

/// Writes control and direction-changing characters, NUL above all, as `\u{…}`; newline and tab stay. A literal
/// `\u{` becomes `\u{5c}u{`, so that no two texts look alike.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        let hidden = match c {
            '\n' | '\t' => false,
            '\\' => text[at..].starts_with("\\u{"),
            // direction overrides and isolates, line separators, zero-width characters, byte-order mark
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' => true,
            c => c.is_control(),
        };
        if hidden {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::{ShortString, strategy};
    use super::*;

    #[test]
    fn every_type_shows_its_type() {
        let cases = [
            (Value::Bool(true), json!({"type": "bool", "value": true})),
            (Value::I8(-1), json!({"type": "int8", "value": -1})),
            (Value::U8(255), json!({"type": "uint8", "value": 255})),
            (Value::I16(-1), json!({"type": "int16", "value": -1})),
            (Value::U16(1), json!({"type": "uint16", "value": 1})),
            (Value::I32(-1), json!({"type": "int32", "value": -1})),
            (Value::U32(u32::MAX), json!({"type": "uint32", "value": 4_294_967_295_u32})),
            (Value::I64(i64::MIN), json!({"type": "int64", "value": "-9223372036854775808"})),
            (Value::F32(0.1.into()), json!({"type": "float", "value": "0.1"})),
            (Value::F64(f64::NAN.into()), json!({"type": "double", "value": "NaN"})),
            (Value::Decimal { scale: 2, value: 5 }, json!({"type": "decimal", "value": "0.05"})),
            (Value::Decimal { scale: 0, value: 5 }, json!({"type": "decimal", "value": "5"})),
            (Value::text("é"), json!({"type": "long_string", "value": "é"})),
            (Value::LongString(b"caf\xe9".into()), json!({"type": "long_string", "value": {"b64": "Y2Fm6Q=="}})),
            (Value::Bytes(vec![0]), json!({"type": "bytes", "value": "AA=="})),
            (Value::Array(vec![Value::Void]), json!({"type": "array", "value": [{"type": "void"}]})),
            (Value::Timestamp(7), json!({"type": "timestamp", "value": "7"})),
            (Value::Table(Table::new()), json!({"type": "table", "value": []})),
        ];
        for (value, want) in cases {
            let got = serde_json::to_value(value.readable()).unwrap();
            assert_eq!(got, want);
            assert_eq!(serde_json::from_value::<ReadableValue>(got).unwrap(), value.readable());
        }
    }

    #[test]
    fn fields_are_a_list_with_equal_keys() {
        let key = |k: &[u8]| ShortString::new(k).unwrap();
        let table =
            Table::from_iter([(key(b"a\0"), Value::U8(1)), (key(b"a\0"), Value::U8(2)), (key(b"\xff"), Value::Void)]);
        let want = json!([
            {"name": "a\\u{0}", "type": "uint8", "value": 1},
            {"name": "a\\u{0}", "type": "uint8", "value": 2},
            {"name": {"b64": "/w=="}, "type": "void"},
        ]);
        assert_eq!(serde_json::to_value(table.readable()).unwrap(), want);
    }

    #[test]
    fn controls_are_visible_and_unambiguous() {
        let cases = [
            ("a\0b", "a\\u{0}b"),
            ("a\nb\tc", "a\nb\tc"),
            ("\u{1b}[31m", "\\u{1b}[31m"),
            ("\u{202e}gpj.exe", "\\u{202e}gpj.exe"),
            ("C:\\users", "C:\\users"),
            ("a\\u{0}b", "a\\u{5c}u{0}b"),
        ];
        for (text, want) in cases {
            assert_eq!(visible(text), want);
        }
    }

    proptest! {
        #[test]
        fn readable_json_never_holds_nul(table in strategy::table()) {
            let json = serde_json::to_string(&table.readable()).unwrap();
            prop_assert!(!json.contains("\\u0000"));
            prop_assert_eq!(serde_json::from_str::<Vec<ReadableField>>(&json).unwrap(), table.readable());
        }

        #[test]
        fn visible_is_injective(a in "[\\\\u{}05c\0]{0,8}", b in "[\\\\u{}05c\0]{0,8}") {
            prop_assert_eq!(a == b, visible(&a) == visible(&b));
        }
    }
}
