//! Pages by keyset: a cursor is the key of the last row, opaque to clients.

use crate::error::{Error, Result};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use domain::api::{Page, Total, TotalRelation};
use serde::{Serialize, de::DeserializeOwned};

/// Rows on a page where the request doesn't say.
const DEFAULT_LIMIT: i64 = 50;
/// Rows on a page at most.
pub const LIMIT: i64 = 200;
/// Counting stops here; a larger total is a lower bound.
pub const COUNT_LIMIT: i64 = 10_000;

/// `limit` as asked, 1 to [`LIMIT`].
///
/// # Errors
/// 422 outside of that.
pub fn limit(asked: Option<i64>) -> Result<i64> {
    let limit = asked.unwrap_or(DEFAULT_LIMIT);
    if (1..=LIMIT).contains(&limit) { Ok(limit) } else { Err(Error::invalid("limit", format!("1 to {LIMIT}"))) }
}

/// The key that a cursor holds.
///
/// # Errors
/// 400 `bad_cursor`.
pub fn after<K: DeserializeOwned>(cursor: Option<&str>) -> Result<Option<K>> {
    let Some(cursor) = cursor else { return Ok(None) };
    let key = URL_SAFE_NO_PAD.decode(cursor).ok().and_then(|json| serde_json::from_slice(&json).ok());
    key.map(Some).ok_or_else(|| Error::BadRequest {
        code: "bad_cursor",
        detail: "Give a cursor as `next_cursor` said it.".to_owned(),
    })
}

/// A page of rows that were asked for with `limit + 1`: the one too many says that there are more.
///
/// # Errors
/// A key that isn't JSON: a defect.
pub fn page<T, K: Serialize>(mut items: Vec<T>, limit: i64, count: i64, key: impl Fn(&T) -> K) -> Result<Page<T>> {
    let wanted = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = items.len() > wanted;
    items.truncate(wanted);
    let next_cursor = match items.last() {
        Some(last) if more => {
            Some(URL_SAFE_NO_PAD.encode(serde_json::to_vec(&key(last)).map_err(|e| Error::Internal(e.into()))?))
        }
        _ => None,
    };
    let total = if count > COUNT_LIMIT {
        Total { value: COUNT_LIMIT, relation: TotalRelation::Gte }
    } else {
        Total { value: count, relation: TotalRelation::Eq }
    };
    Ok(Page { items, next_cursor, total })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_knows_whether_there_are_more() {
        let full = page(vec![1, 2, 3], 2, 3, |n| *n).unwrap();
        assert_eq!(full.items, [1, 2]);
        assert_eq!(after::<i32>(full.next_cursor.as_deref()).unwrap(), Some(2));
        assert_eq!(page(vec![1, 2], 2, 2, |n| *n).unwrap().next_cursor, None);
        assert_eq!(page(vec![1], 2, COUNT_LIMIT + 1, |n| *n).unwrap().total.relation, TotalRelation::Gte);
        assert!(after::<i32>(Some("?")).is_err() && limit(Some(0)).is_err() && limit(Some(201)).is_err());
    }
}
