//! A replay as people see it, and what they say of items in doubt.
