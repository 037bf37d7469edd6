//! Signing in.

use super::{Timestamp, wire};
use crate::{
    ids::UserId,
    vocabulary::{Permission, Role},
};

wire! {
    /// `POST /session`.
    pub struct SignIn {
        /// The account's name, in any case.
        pub username: String,
        /// The password.
        pub password: String,
    }

    /// `POST /session/confirm`.
    pub struct ConfirmSession {
        /// The password of the person signed in.
        pub password: String,
    }

    /// `GET /session`: who I am.
    pub struct Session {
        /// The person.
        pub user: UserRef,
        /// Roles now.
        pub roles: Vec<Role>,
        /// What they allow.
        pub permissions: Vec<Permission>,
        /// When the person last signed in or confirmed; an approval needs it within five minutes.
        pub confirmed_at: Timestamp,
        /// When the session ends by itself.
        pub expires_at: Timestamp,
    }

    /// A person or machine, named.
    pub struct UserRef {
        /// Identity.
        pub id: UserId,
        /// The account's name.
        pub username: String,
    }
}
