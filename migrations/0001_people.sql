-- People, their sessions, the log of decisions, and what makes acting calls idempotent.
-- Two roles: the owner (this one) migrates; `lazaret_app` serves and can do only what is granted below.

DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'lazaret_app') THEN
    CREATE ROLE lazaret_app LOGIN;
  END IF;
END $$;

CREATE TABLE installation (
  only_one boolean PRIMARY KEY DEFAULT true CONSTRAINT installation_only_one CHECK (only_one),
  id uuid NOT NULL,
  -- keys the HMACs of fingerprints and of custody's match hash
  hmac_key bytea NOT NULL CONSTRAINT installation_key_is_32_bytes CHECK (length(hmac_key) = 32),
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE users (
  id uuid PRIMARY KEY,
  username text NOT NULL CONSTRAINT users_username_form CHECK (username ~ '^[a-z0-9._-]{1,64}$'),
  password_hash text NOT NULL,
  roles text[] NOT NULL CONSTRAINT users_roles_known
    CHECK (cardinality(roles) > 0 AND roles <@ ARRAY['viewer','responder','approver','auditor','admin','emitter']),
  machine boolean NOT NULL DEFAULT false,
  disabled_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  version bigint NOT NULL DEFAULT 1,
  CONSTRAINT users_username_unique UNIQUE (username)
);

-- Who touched whose account: RULES 4, `tainted_approver`.
CREATE TABLE user_changes (
  id uuid PRIMARY KEY,
  user_id uuid NOT NULL REFERENCES users,
  changed_by uuid REFERENCES users,
  what text NOT NULL CONSTRAINT user_changes_what_known CHECK (what IN ('created', 'password', 'roles', 'disabled')),
  at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX user_changes_by_user ON user_changes (user_id, at);

CREATE TABLE sessions (
  id text PRIMARY KEY,
  user_id uuid REFERENCES users,
  data bytea NOT NULL,
  expires_at timestamptz NOT NULL
);
CREATE INDEX sessions_by_user ON sessions (user_id);
CREATE INDEX sessions_by_expiry ON sessions (expires_at);

CREATE TABLE login_failures (
  id uuid PRIMARY KEY,
  username text NOT NULL,
  ip text NOT NULL,
  at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX login_failures_by_username ON login_failures (username, at);
CREATE INDEX login_failures_by_ip ON login_failures (ip, at);

CREATE TABLE idempotency_keys (
  actor_id uuid NOT NULL REFERENCES users,
  method text NOT NULL,
  path text NOT NULL,
  key text NOT NULL CONSTRAINT idempotency_keys_key_length CHECK (length(key) BETWEEN 1 AND 200),
  request_hash bytea NOT NULL,
  status integer NOT NULL,
  etag text,
  body bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT idempotency_keys_scope PRIMARY KEY (actor_id, method, path, key)
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);

-- Decisions (RULES 18): written in the business transaction, without a sequence; a sequencer numbers them later.
CREATE TABLE audit_entries (
  id uuid PRIMARY KEY,
  -- lets a sequencer bound itself by the oldest running transaction
  xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  actor_kind text NOT NULL CONSTRAINT audit_entries_actor_kind_known CHECK (actor_kind IN ('person', 'machine', 'system')),
  actor_id uuid,
  actor_name text NOT NULL,
  actor_roles text[] NOT NULL,
  credential_id text,
  action text NOT NULL,
  subject_kind text NOT NULL,
  subject_id text NOT NULL,
  subject_name text,
  before jsonb,
  after jsonb,
  reason text,
  request_id text,
  ip text,
  result text NOT NULL CONSTRAINT audit_entries_result_known CHECK (result IN ('done', 'refused')),
  code text,
  CONSTRAINT audit_entries_actor_named CHECK ((actor_kind = 'system') = (actor_id IS NULL)),
  CONSTRAINT audit_entries_refusal_has_code CHECK ((result = 'refused') = (code IS NOT NULL))
);
CREATE INDEX audit_entries_by_time ON audit_entries (at DESC, id DESC);
CREATE INDEX audit_entries_by_subject ON audit_entries (subject_kind, subject_id, at DESC);
CREATE INDEX audit_entries_by_actor ON audit_entries (actor_name, at DESC);

-- Further refusals of one actor and code within a minute are counted, not written (RULES 18).
CREATE TABLE audit_refusal_counts (
  entry_id uuid PRIMARY KEY REFERENCES audit_entries,
  actor_id uuid NOT NULL,
  code text NOT NULL,
  minute timestamptz NOT NULL,
  count bigint NOT NULL DEFAULT 1,
  CONSTRAINT audit_refusal_counts_scope UNIQUE (actor_id, code, minute)
);

GRANT USAGE ON SCHEMA public TO lazaret_app;
GRANT SELECT, INSERT ON installation TO lazaret_app;
GRANT SELECT, INSERT, UPDATE ON users TO lazaret_app;
GRANT SELECT, INSERT ON user_changes TO lazaret_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON sessions, login_failures, idempotency_keys TO lazaret_app;
GRANT SELECT, INSERT ON audit_entries TO lazaret_app;
GRANT SELECT, INSERT, UPDATE ON audit_refusal_counts TO lazaret_app;
