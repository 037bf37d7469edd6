//! Who acts: a person or machine that signed in, or the system itself.

use domain::{
    ids::UserId,
    vocabulary::{Permission, Role},
};
use time::OffsetDateTime;

/// Who acts, and from where; handed to `app` and kept by the audit entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// `None` is the system.
    pub user: Option<ActorUser>,
    /// Names the request in the logs.
    pub request_id: Option<String>,
    /// The address it came from.
    pub ip: Option<String>,
}

/// The account behind an actor, as read from the database for this request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActorUser {
    /// Identity.
    pub id: UserId,
    /// Name.
    pub username: String,
    /// Roles now.
    pub roles: Vec<Role>,
    /// A machine never approves.
    pub machine: bool,
    /// Which session, as a hash: never the secret itself.
    pub credential_id: String,
    /// When the person last signed in or confirmed.
    pub confirmed_at: OffsetDateTime,
}

impl Actor {
    /// A worker of Lazaret's own.
    #[must_use]
    pub const fn system() -> Self {
        Self { user: None, request_id: None, ip: None }
    }

    /// The account, where there must be one.
    ///
    /// # Errors
    /// `Unauthenticated` for the system.
    pub fn user(&self) -> crate::error::Result<&ActorUser> {
        self.user.as_ref().ok_or(crate::error::Error::Unauthenticated)
    }

    /// Whether a role of theirs has the permission (RULES 4).
    #[must_use]
    pub fn may(&self, permission: Permission) -> bool {
        self.user.as_ref().is_some_and(|user| domain::permissions::allows(&user.roles, permission))
    }
}
