-- Brokers, watched queues, DLQ-owned custody, leases with epochs, freeze rows.

CREATE TABLE brokers (
  id uuid PRIMARY KEY,
  name text NOT NULL CONSTRAINT brokers_name_length CHECK (length(name) BETWEEN 1 AND 100),
  amqp_url text NOT NULL,
  management_url text,
  credentials text NOT NULL,
  -- numbers publishes to this broker, in the order in which they are recorded (RULES 19)
  publish_number bigint NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT now(),
  version bigint NOT NULL DEFAULT 1,
  CONSTRAINT brokers_name_unique UNIQUE (name)
);

CREATE TABLE dead_letter_queues (
  id uuid PRIMARY KEY,
  broker_id uuid NOT NULL REFERENCES brokers,
  vhost text NOT NULL,
  name text NOT NULL,
  custody text NOT NULL DEFAULT 'off' CONSTRAINT dead_letter_queues_custody_known CHECK (custody IN ('off', 'observe', 'drain')),
  state text NOT NULL DEFAULT 'off' CONSTRAINT dead_letter_queues_state_known CHECK (state IN ('off', 'waiting', 'draining', 'stopped')),
  state_reason text,
  state_since timestamptz NOT NULL DEFAULT now(),
  created_at timestamptz NOT NULL DEFAULT now(),
  version bigint NOT NULL DEFAULT 1,
  CONSTRAINT dead_letter_queues_name_unique UNIQUE (broker_id, vhost, name)
);

CREATE TABLE queues (
  id uuid PRIMARY KEY,
  broker_id uuid NOT NULL REFERENCES brokers,
  vhost text NOT NULL,
  name text NOT NULL,
  dead_letter_queue_id uuid NOT NULL REFERENCES dead_letter_queues,
  headers jsonb NOT NULL,
  retry_policy jsonb NOT NULL,
  -- rises with each change of retry_policy; evidence keeps the version that judged it
  policy_version bigint NOT NULL DEFAULT 1,
  slo jsonb NOT NULL,
  approval_policy jsonb NOT NULL,
  default_probe text,
  -- the generation counter: raised by approvals only, never reset
  redrive_generation bigint NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT now(),
  version bigint NOT NULL DEFAULT 1,
  CONSTRAINT queues_name_unique UNIQUE (broker_id, vhost, name)
);

CREATE TABLE queue_policies (
  queue_id uuid NOT NULL REFERENCES queues,
  policy_version bigint NOT NULL,
  retry_policy jsonb NOT NULL,
  at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (queue_id, policy_version)
);

-- One row for all (the nil uuid) and one per queue, there before any freeze: publishes share-lock them.
CREATE TABLE freezes (
  scope uuid PRIMARY KEY,
  queue_id uuid REFERENCES queues,
  frozen boolean NOT NULL DEFAULT false,
  reason text,
  by_id uuid REFERENCES users,
  at timestamptz,
  CONSTRAINT freezes_scope_is_its_queue
    CHECK ((queue_id IS NULL AND scope = '00000000-0000-0000-0000-000000000000') OR queue_id = scope),
  CONSTRAINT freezes_frozen_says_who CHECK (NOT frozen OR (reason IS NOT NULL AND by_id IS NOT NULL AND at IS NOT NULL))
);
INSERT INTO freezes (scope) VALUES ('00000000-0000-0000-0000-000000000000');

-- Duties that one process at a time may do; the epoch rises at each grant and is checked in every write made under it.
CREATE TABLE leases (
  duty text NOT NULL CONSTRAINT leases_duty_known CHECK (duty IN ('custody', 'replay')),
  subject uuid NOT NULL,
  epoch bigint NOT NULL DEFAULT 0,
  owner text,
  expires_at timestamptz,
  PRIMARY KEY (duty, subject)
);

CREATE TABLE probes (
  name text PRIMARY KEY CONSTRAINT probes_name_form CHECK (name ~ '^[a-z0-9-]{1,64}$'),
  definition jsonb NOT NULL,
  changed_at timestamptz NOT NULL DEFAULT now(),
  version bigint NOT NULL DEFAULT 1
);

GRANT SELECT, INSERT, UPDATE ON brokers, dead_letter_queues, queues, freezes, probes TO lazaret_app;
GRANT SELECT, INSERT ON queue_policies TO lazaret_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON leases TO lazaret_app;
