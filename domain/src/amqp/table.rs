//! The field table.

use super::{ShortString, Value};

/// A field table: an ordered list of fields, which may repeat a key.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Table(Vec<(ShortString, Value)>);

impl Table {
    /// A table without fields.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a field at the end, also where its key is there already.
    pub fn push(&mut self, key: ShortString, value: Value) {
        self.0.push((key, value));
    }

    /// The first field of that name, which is the one that RabbitMQ reads.
    pub fn get(&self, key: &[u8]) -> Option<&Value> {
        self.0.iter().find(|(name, _)| name.as_bytes() == key).map(|(_, value)| value)
    }

    /// The fields, as they arrived.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&ShortString, &Value)> {
        self.0.iter().map(|(key, value)| (key, value))
    }

    /// How many fields there are; equal keys count each.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no field.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same fields with keys in bytewise order at every level; equal keys stay in the order they arrived in.
    #[must_use]
    pub fn sorted(&self) -> Self {
        let mut fields: Vec<_> = self.0.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
        fields.sort_by(|(a, _), (b, _)| a.cmp(b));
        Self(fields)
    }
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Table(table) => Value::Table(table.sorted()),
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

impl FromIterator<(ShortString, Value)> for Table {
    fn from_iter<I: IntoIterator<Item = (ShortString, Value)>>(fields: I) -> Self {
        Self(fields.into_iter().collect())
    }
}

impl IntoIterator for Table {
    type Item = (ShortString, Value);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
