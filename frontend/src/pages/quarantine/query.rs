//! The quarantine list's address: every filter is in the query, so that a pasted link opens the same view.

use leptos_router::params::ParamsMap;

/// Filters with several values, in the order of the facets.
pub(super) const MANY: [&str; 6] = ["queue", "error_class", "fingerprint", "state", "worker_version", "kind"];

/// What is filtered for. An empty value means "none" (unattributed, unclassified), so values aren't dropped for it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Filters {
    /// Name and value of every list filter, in address order.
    pub(super) pairs: Vec<(&'static str, String)>,
    /// Literal text.
    pub(super) q: String,
}

impl Filters {
    /// From the address.
    pub(super) fn from_query(query: &ParamsMap) -> Self {
        let pairs = MANY
            .into_iter()
            .flat_map(|name| query.get_all(name).unwrap_or_default().into_iter().map(move |value| (name, value)))
            .collect();
        Self { pairs, q: query.get("q").unwrap_or_default() }
    }

    /// The values of one filter.
    pub(super) fn values(&self, name: &str) -> Vec<String> {
        self.pairs.iter().filter(|(filter, _)| *filter == name).map(|(_, value)| value.clone()).collect()
    }

    /// Whether a value is chosen.
    pub(super) fn has(&self, name: &str, value: &str) -> bool {
        self.pairs.iter().any(|(filter, chosen)| *filter == name && chosen == value)
    }

    /// Chooses a value, or lets go of it.
    pub(super) fn toggled(&self, name: &str, value: &str) -> Self {
        let mut next = self.clone();
        if self.has(name, value) {
            next.pairs.retain(|(filter, chosen)| !(*filter == name && chosen == value));
        } else if let Some(name) = MANY.into_iter().find(|known| *known == name) {
            next.pairs.push((name, value.to_owned()));
        }
        next
    }

    /// With another text.
    pub(super) fn searching(&self, q: String) -> Self {
        Self { q, ..self.clone() }
    }

    /// The query of the page and of `GET /quarantine` alike; with its `?`, or nothing.
    pub(super) fn to_query(&self) -> String {
        let mut parts: Vec<String> =
            self.pairs.iter().map(|(name, value)| format!("{name}={}", crate::api::encode(value))).collect();
        if !self.q.is_empty() {
            parts.push(format!("q={}", crate::api::encode(&self.q)));
        }
        if parts.is_empty() { String::new() } else { format!("?{}", parts.join("&")) }
    }

    /// The same with one more parameter, for the API.
    pub(super) fn with(&self, name: &str, value: &str) -> String {
        let query = self.to_query();
        let joint = if query.is_empty() { "?" } else { "&" };
        format!("{query}{joint}{name}={}", crate::api::encode(value))
    }

    /// Whether nothing is filtered.
    pub(super) fn is_empty(&self) -> bool {
        self.pairs.is_empty() && self.q.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_survive_the_address() {
        let mut query = ParamsMap::new();
        query.insert("state", "held".to_owned());
        query.insert("error_class", String::new());
        query.insert("q", "50 %".to_owned());
        let filters = Filters::from_query(&query);
        assert_eq!(filters.to_query(), "?error_class=&state=held&q=50%20%25");
        assert!(filters.has("error_class", ""), "unclassified is a value of its own");
        assert_eq!(filters.toggled("state", "held").to_query(), "?error_class=&q=50%20%25");
        assert_eq!(filters.with("cursor", "abc"), "?error_class=&state=held&q=50%20%25&cursor=abc");
    }
}
