//! Identities. Ids that Lazaret gives are UUIDv7, made at the edge and handed in.

use serde::{Deserialize, Serialize};
use std::fmt;
use uuid::Uuid;

macro_rules! id {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = uuid::Error;
            fn from_str(s: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(s).map(Self)
            }
        }

        impl From<Uuid> for $name {
            fn from(id: Uuid) -> Self {
                Self(id)
            }
        }
    )*};
}

id! {
    /// A person or a machine that signs in.
    UserId,
    /// One RabbitMQ cluster.
    BrokerId,
    /// A watched source queue: (broker, vhost, name).
    QueueId,
    /// A dead-letter queue; custody and its lease belong to it.
    DeadLetterQueueId,
    /// One row of evidence.
    QuarantineId,
    /// A cohort.
    CohortId,
    /// One message in one cohort.
    ItemId,
    /// One publish of one item; carried by the message as `lazaret-redrive-id`.
    RedriveId,
    /// One recorded decision.
    AuditId,
    /// One worker event, named by its sender.
    EventId,
}

/// A name that an application chose (job id, message id, routing key): any bytes.
///
/// JSON: a string where the bytes are UTF-8, else `{"b64": "…"}` (standard alphabet, padded).
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct AppName(pub Vec<u8>);

impl AppName {
    /// The bytes as text, if they are UTF-8.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// One path segment that names it: percent-encoded text, or `b64:…` (URL-safe alphabet, no padding).
    #[must_use]
    pub fn to_path_segment(&self) -> String {
        use base64::Engine as _;
        match self.as_str() {
            Some(text) if !text.starts_with("b64:") => percent_encode(text),
            _ => format!("b64:{}", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(&self.0)),
        }
    }

    /// Reads a path segment that the router has percent-decoded.
    ///
    /// # Errors
    /// The text after `b64:` isn't URL-safe base64.
    pub fn from_path_segment(segment: &str) -> Result<Self, base64::DecodeError> {
        use base64::Engine as _;
        match segment.strip_prefix("b64:") {
            Some(code) => base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(code).map(Self),
            None => Ok(Self(segment.as_bytes().to_vec())),
        }
    }
}

fn percent_encode(text: &str) -> String {
    use std::fmt::Write as _;
    text.bytes().fold(String::with_capacity(text.len()), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // writing to a String can't fail
            let _ = write!(out, "%{byte:02X}");
        }
        out
    })
}

impl From<&str> for AppName {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

/// Readable: UTF-8 with control characters as visible escapes; other bytes as `\xNN`.
impl fmt::Display for AppName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                if c.is_control() { write!(f, "{}", c.escape_default())? } else { write!(f, "{c}")? }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for AppName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum AppNameJson {
    Text(String),
    Bytes { b64: String },
}

impl Serialize for AppName {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        use base64::Engine as _;
        match self.as_str() {
            Some(text) => AppNameJson::Text(text.to_owned()),
            None => AppNameJson::Bytes { b64: base64::engine::general_purpose::STANDARD.encode(&self.0) },
        }
        .serialize(s)
    }
}

impl<'de> Deserialize<'de> for AppName {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        use base64::Engine as _;
        match AppNameJson::deserialize(d)? {
            AppNameJson::Text(text) => Ok(Self(text.into_bytes())),
            AppNameJson::Bytes { b64 } => {
                base64::engine::general_purpose::STANDARD.decode(b64).map(Self).map_err(serde::de::Error::custom)
            }
        }
    }
}

#[cfg(feature = "openapi")]
impl utoipa::PartialSchema for AppName {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, SchemaType, Type};
        OneOfBuilder::new()
            .item(ObjectBuilder::new().schema_type(SchemaType::Type(Type::String)))
            .item(
                ObjectBuilder::new()
                    .property("b64", ObjectBuilder::new().schema_type(SchemaType::Type(Type::String)))
                    .required("b64"),
            )
            .into()
    }
}

#[cfg(feature = "openapi")]
impl utoipa::ToSchema for AppName {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn app_names_survive_json_and_paths() {
        for bytes in [&b"inv-1"[..], b"caf\xe9", b"b64:abc", b"a/b %?#", b"nul\0", b"", "ünï".as_bytes()] {
            let name = AppName(bytes.to_vec());
            let json = serde_json::to_string(&name).unwrap();
            assert_eq!(serde_json::from_str::<AppName>(&json).unwrap(), name, "{json}");
            let segment = name.to_path_segment();
            assert!(segment.bytes().all(|b| b.is_ascii_graphic() && b != b'/'), "{segment}");
        }
        assert_eq!(AppName(b"caf\xe9\0".to_vec()).to_string(), "caf\\xe9\\u{0}");
        assert_eq!(AppName::from_path_segment("b64:Y2Fm6Q").unwrap(), AppName(b"caf\xe9".to_vec()));
    }
}
