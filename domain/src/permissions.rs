//! The permission table of RULES 4: roles combine, and admin alone neither drafts nor approves.

use crate::vocabulary::{Permission, Role};

/// Whether one of `roles` has `permission`.
#[must_use]
pub fn allows(roles: &[Role], permission: Permission) -> bool {
    roles.iter().any(|role| role_allows(*role, permission))
}

/// Everything that `roles` may do.
#[must_use]
pub fn of(roles: &[Role]) -> Vec<Permission> {
    Permission::ALL.iter().copied().filter(|permission| allows(roles, *permission)).collect()
}

const fn role_allows(role: Role, permission: Permission) -> bool {
    use Role::{Admin, Approver, Auditor, Emitter, Responder, Viewer};
    match permission {
        Permission::Read => !matches!(role, Emitter),
        Permission::Own => matches!(role, Viewer | Responder | Approver | Auditor | Admin | Emitter),
        Permission::Reveal => matches!(role, Responder | Approver | Auditor),
        Permission::Respond => matches!(role, Responder),
        Permission::Approve => matches!(role, Approver),
        Permission::Stop => matches!(role, Responder | Approver | Admin),
        Permission::Administer => matches!(role, Admin),
        Permission::ExportLog => matches!(role, Auditor),
        Permission::SendEvents => matches!(role, Emitter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RULES 4, line by line; the columns are viewer, responder, approver, auditor, admin, emitter.
    const TABLE: &[(Permission, [bool; 6])] = &[
        (Permission::Read, [true, true, true, true, true, false]),
        (Permission::Reveal, [false, true, true, true, false, false]),
        (Permission::Respond, [false, true, false, false, false, false]),
        (Permission::Approve, [false, false, true, false, false, false]),
        (Permission::Stop, [false, true, true, false, true, false]),
        (Permission::Administer, [false, false, false, false, true, false]),
        (Permission::ExportLog, [false, false, false, true, false, false]),
        (Permission::SendEvents, [false, false, false, false, false, true]),
        (Permission::Own, [true, true, true, true, true, true]),
    ];

    #[test]
    fn the_table_is_the_rules() {
        assert_eq!(TABLE.len(), Permission::ALL.len());
        for (permission, row) in TABLE {
            for (role, allowed) in Role::ALL.iter().zip(row) {
                assert_eq!(allows(&[*role], *permission), *allowed, "{role} {permission}");
            }
        }
        assert!(allows(&[Role::Admin, Role::Approver], Permission::Approve), "roles combine");
        assert!(!allows(&[], Permission::Read));
    }
}
