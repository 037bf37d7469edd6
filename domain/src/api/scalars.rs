//! Scalars of the wire: instants, rates, readings.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use time::{OffsetDateTime, format_description::well_known::Rfc3339, macros::format_description};

/// An instant: RFC 3339, UTC, microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub OffsetDateTime);

impl Timestamp {
    /// The instant as `2026-12-02T03:14:20.000000Z`.
    #[must_use]
    pub fn to_rfc3339(self) -> String {
        let format = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z");
        self.0.to_offset(time::UtcOffset::UTC).format(format).unwrap_or_else(|_| self.0.to_string())
    }
}

impl From<OffsetDateTime> for Timestamp {
    fn from(at: OffsetDateTime) -> Self {
        Self(at)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.to_rfc3339())
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        OffsetDateTime::parse(&text, &Rfc3339)
            .map(|at| Self(at.to_offset(time::UtcOffset::UTC)))
            .map_err(|_| D::Error::custom("an RFC 3339 time, like 2026-12-02T03:14:20Z"))
    }
}

/// A rate, fraction or factor with at most three decimals, kept in thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Thousandths(pub i64);

impl Thousandths {
    /// As a number, for arithmetic and display.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        // at most 2^53 thousandths are accepted, so this is exact
        #[expect(clippy::cast_precision_loss, reason = "bounded by parsing")]
        let value = self.0 as f64;
        value / 1000.0
    }
}

impl Serialize for Thousandths {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        if self.0 % 1000 == 0 { s.serialize_i64(self.0 / 1000) } else { s.serialize_f64(self.as_f64()) }
    }
}

impl<'de> Deserialize<'de> for Thousandths {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let value = f64::deserialize(d)?;
        let thousandths = (value * 1000.0).round();
        let exact = (value * 1000.0 - thousandths).abs() < 1e-6;
        if !(exact && value.is_finite() && thousandths.abs() <= 1e12) {
            return Err(D::Error::custom("a number with at most three decimals, below 1e9"));
        }
        #[expect(clippy::cast_possible_truncation, reason = "integral and bounded above")]
        Ok(Self(thousandths as i64))
    }
}

#[cfg(feature = "openapi")]
mod openapi {
    use utoipa::openapi::RefOr;
    use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, SchemaType, Type};

    impl utoipa::PartialSchema for super::Timestamp {
        fn schema() -> RefOr<Schema> {
            ObjectBuilder::new()
                .schema_type(SchemaType::Type(Type::String))
                .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
                .into()
        }
    }
    impl utoipa::ToSchema for super::Timestamp {}

    impl utoipa::PartialSchema for super::Thousandths {
        fn schema() -> RefOr<Schema> {
            ObjectBuilder::new().schema_type(SchemaType::Type(Type::Number)).into()
        }
    }
    impl utoipa::ToSchema for super::Thousandths {}
}

super::wire! {
    /// A live reading: a value with source and age, or a reason why there is none. Never a made-up 0.
    pub struct Reading {
        /// The value; `None` is unknown.
        pub value: Option<f64>,
        /// Where it comes from: `management`, `events`, `custody`, `vault`.
        pub source: String,
        /// When it was true.
        pub as_of: Option<Timestamp>,
        /// Why it is unknown: `no_event_feed`, `no_management_api`, `stale`, `no_samples`.
        pub reason: Option<String>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_utc_with_microseconds() {
        let at: Timestamp = serde_json::from_str("\"2026-12-02T04:14:20.5+01:00\"").unwrap();
        assert_eq!(serde_json::to_string(&at).unwrap(), "\"2026-12-02T03:14:20.500000Z\"");
        assert!(serde_json::from_str::<Timestamp>("\"yesterday\"").is_err());
    }

    #[test]
    fn rates_have_at_most_three_decimals() {
        for (text, thousandths, again) in [("2", 2000, "2"), ("0.125", 125, "0.125"), ("1.5", 1500, "1.5")] {
            let rate: Thousandths = serde_json::from_str(text).unwrap();
            assert_eq!(rate.0, thousandths);
            assert_eq!(serde_json::to_string(&rate).unwrap(), again);
        }
        for bad in ["0.0001", "1e300", "\"2\"", "null"] {
            assert!(serde_json::from_str::<Thousandths>(bad).is_err(), "{bad}");
        }
    }
}
