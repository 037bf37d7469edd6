//! Keys and the keyed hashes made with them. Keys never show in `Debug` output.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

/// The key of one custody row, 32 random bytes; erasing it erases what the commitment could prove.
#[derive(Clone, PartialEq, Eq)]
pub struct RowKey(pub [u8; 32]);

/// The installation's key, 32 random bytes, from which match hashes and fingerprints are made.
#[derive(Clone, PartialEq, Eq)]
pub struct InstallationKey(pub [u8; 32]);

impl fmt::Debug for RowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RowKey(…)")
    }
}

impl fmt::Debug for InstallationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InstallationKey(…)")
    }
}

/// A 32-byte hash, written as 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Hash32(pub [u8; 32]);

/// The text is not 64 hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not 64 hexadecimal digits")]
pub struct NotAHash;

impl Hash32 {
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Hash32 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Hash32 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hash32({self})")
    }
}

impl std::str::FromStr for Hash32 {
    type Err = NotAHash;

    fn from_str(text: &str) -> Result<Self, NotAHash> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| NotAHash)?;
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for Hash32 {
    type Error = NotAHash;

    fn try_from(text: String) -> Result<Self, NotAHash> {
        text.parse()
    }
}

impl From<Hash32> for String {
    fn from(hash: Hash32) -> Self {
        hash.to_string()
    }
}

impl TryFrom<&[u8]> for Hash32 {
    type Error = NotAHash;

    fn try_from(bytes: &[u8]) -> Result<Self, NotAHash> {
        bytes.try_into().map(Self).map_err(|_| NotAHash)
    }
}

/// An HMAC-SHA256 in the making.
pub(crate) struct Keyed(Hmac<Sha256>);

impl Keyed {
    /// For a key that has one use only.
    pub(crate) fn unlabelled(key: &[u8; 32]) -> Self {
        Self(Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length"))
    }

    /// Begins with `label` and a NUL, so that the uses of one key can't be mistaken for each other.
    pub(crate) fn new(key: &[u8; 32], label: &str) -> Self {
        let mut mac = Self::unlabelled(key);
        mac.update(label.as_bytes());
        mac.update(&[0]);
        mac
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Adds `bytes` with their length before them.
    pub(crate) fn part(&mut self, bytes: &[u8]) {
        self.update(&(bytes.len() as u64).to_be_bytes());
        self.update(bytes);
    }

    pub(crate) fn finish(self) -> Hash32 {
        Hash32(self.0.finalize().into_bytes().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_hex() {
        let hash = Hash32([0xab; 32]);
        assert_eq!(hash.to_string(), "ab".repeat(32));
        assert_eq!(hash.to_string().parse(), Ok(hash));
        assert_eq!("ab".parse::<Hash32>(), Err(NotAHash));
        assert_eq!(serde_json::to_string(&hash).unwrap(), format!("\"{hash}\""));
    }

    #[test]
    fn labels_and_lengths_separate() {
        let of = |label: &str, parts: &[&[u8]]| {
            let mut mac = Keyed::new(&[7; 32], label);
            parts.iter().for_each(|part| mac.part(part));
            mac.finish()
        };
        assert_ne!(of("a", &[b"x"]), of("b", &[b"x"]));
        assert_ne!(of("a", &[b"x", b"yz"]), of("a", &[b"xy", b"z"]));
    }
}
