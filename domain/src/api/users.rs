//! People and machines; admin only.

use super::{Timestamp, wire};
use crate::{ids::UserId, vocabulary::Role};

wire! {
    /// An account.
    pub struct User {
        /// Identity.
        pub id: UserId,
        /// Lower case, unique; 1–64 of `a-z0-9._-`.
        pub username: String,
        /// What they may do.
        pub roles: Vec<Role>,
        /// A machine never approves.
        pub machine: bool,
        /// Set when the account may not sign in.
        pub disabled_at: Option<Timestamp>,
        /// When it was made.
        pub created_at: Timestamp,
        /// The ETag.
        pub version: i64,
    }

    /// `POST /users`.
    pub struct NewUser {
        /// Made lower case.
        pub username: String,
        /// At least 12 characters.
        pub password: String,
        /// At least one.
        pub roles: Vec<Role>,
        /// A machine: events only.
        #[serde(default)]
        pub machine: bool,
    }

    /// `PATCH /users/{id}`; absent fields stay.
    pub struct ChangeUser {
        /// All roles from now on.
        pub roles: Option<Vec<Role>>,
        /// Whether the account may not sign in.
        pub disabled: Option<bool>,
    }

    /// `POST /users/{id}/password`.
    pub struct SetPassword {
        /// At least 12 characters.
        pub password: String,
    }
}
