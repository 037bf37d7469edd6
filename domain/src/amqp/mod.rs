//! AMQP 0-9-1 values as RabbitMQ speaks them, kept exactly as they arrived.
//!
//! Short strings are bytes: the broker carries non-UTF-8 keys and property values without complaint (BROKER.md,
//! "Consuming with lapin"). A table keeps the order of its fields and equal keys. Type tags are RabbitMQ's, which
//! differ from the specification's (`s` is a signed 16-bit integer, `l` and `L` are both signed 64-bit).

mod codec;
mod properties;
mod readable;
#[cfg(test)]
pub(crate) mod strategy;
mod table;

pub use codec::{DecodeError, Fault, MAX_DEPTH};
pub use properties::{DEFAULT_FRAME_MAX, Message, Properties, Property};
pub use readable::{ReadableField, ReadableText, ReadableValue, visible};
pub use table::Table;

use std::borrow::Borrow;
use std::fmt;

/// A short string: at most 255 bytes, of any content.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ShortString(Vec<u8>);

/// A short string was longer than the 255 bytes that AMQP can carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} bytes don't fit a short string of 255")]
pub struct TooLong(pub usize);

impl ShortString {
    /// The longest short string, in bytes.
    pub const MAX: usize = 255;

    /// Takes `bytes` as a short string; refuses more than [`ShortString::MAX`] of them.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self, TooLong> {
        let bytes = bytes.into();
        if bytes.len() > Self::MAX { Err(TooLong(bytes.len())) } else { Ok(Self(bytes)) }
    }

    /// The bytes, as they arrived.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes, as they arrived.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// The text, where the bytes are UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }
}

impl fmt::Debug for ShortString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

impl Borrow<[u8]> for ShortString {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl TryFrom<&str> for ShortString {
    type Error = TooLong;

    fn try_from(text: &str) -> Result<Self, TooLong> {
        Self::new(text)
    }
}

/// A 32-bit float, held and compared by its bits, so that NaN payloads and signed zeroes survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct F32(pub u32);

impl F32 {
    /// The number.
    pub fn get(self) -> f32 {
        f32::from_bits(self.0)
    }
}

impl From<f32> for F32 {
    fn from(value: f32) -> Self {
        Self(value.to_bits())
    }
}

/// A 64-bit float, held and compared by its bits, so that NaN payloads and signed zeroes survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct F64(pub u64);

impl F64 {
    /// The number.
    pub fn get(self) -> f64 {
        f64::from_bits(self.0)
    }
}

impl From<f64> for F64 {
    fn from(value: f64) -> Self {
        Self(value.to_bits())
    }
}

/// One field value, of every type that RabbitMQ reads and writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// `t`
    Bool(bool),
    /// `b`
    I8(i8),
    /// `B`
    U8(u8),
    /// `s` (RabbitMQ's; also read from the specification's `U`)
    I16(i16),
    /// `u`
    U16(u16),
    /// `I`
    I32(i32),
    /// `i`
    U32(u32),
    /// `l` (also read from `L`, which RabbitMQ treats alike)
    I64(i64),
    /// `f`
    F32(F32),
    /// `d`
    F64(F64),
    /// `D`: `value / 10^scale`
    Decimal {
        /// Places after the decimal point.
        scale: u8,
        /// All digits; unsigned, as RabbitMQ reads it.
        value: u32,
    },
    /// `S`: a long string, of any bytes
    LongString(Vec<u8>),
    /// `x`: a byte array
    Bytes(Vec<u8>),
    /// `A`
    Array(Vec<Value>),
    /// `T`: seconds since 1970, as the sender claims
    Timestamp(u64),
    /// `F`
    Table(Table),
    /// `V`
    Void,
}

impl Value {
    /// A long string of `text`.
    pub fn text(text: impl Into<Vec<u8>>) -> Self {
        Self::LongString(text.into())
    }

    /// The number that any integer type, or a timestamp, holds.
    pub fn as_int(&self) -> Option<i128> {
        match *self {
            Self::I8(n) => Some(n.into()),
            Self::U8(n) => Some(n.into()),
            Self::I16(n) => Some(n.into()),
            Self::U16(n) => Some(n.into()),
            Self::I32(n) => Some(n.into()),
            Self::U32(n) => Some(n.into()),
            Self::I64(n) => Some(n.into()),
            Self::Timestamp(n) => Some(n.into()),
            _ => None,
        }
    }

    /// The bytes of a long string or a byte array.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::LongString(bytes) | Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
}
