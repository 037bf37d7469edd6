-- The vault. Facts are kept beside the payload's row, so that erasing removes bytes and key, and leaves the history.

CREATE TABLE custody_batches (
  id uuid PRIMARY KEY,
  dead_letter_queue_id uuid NOT NULL REFERENCES dead_letter_queues,
  epoch bigint NOT NULL,
  -- names one channel of one process: what it knows of its acks dies with it
  channel uuid NOT NULL,
  rows_stored integer NOT NULL,
  committed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- a later synchronous answer on the channel proved that the ack was processed
  acked_at timestamptz
);

CREATE TABLE quarantine (
  id uuid PRIMARY KEY,
  dead_letter_queue_id uuid NOT NULL REFERENCES dead_letter_queues,
  queue_id uuid REFERENCES queues,
  batch_id uuid NOT NULL REFERENCES custody_batches,
  arrived_at timestamptz NOT NULL DEFAULT clock_timestamp(),

  -- what the broker said
  died_on bytea,
  death_reason text,
  dead_lettered_at timestamptz,
  original_exchange bytea,
  original_routing_key bytea,
  exchange bytea NOT NULL,
  routing_key bytea NOT NULL,
  redelivered boolean NOT NULL,
  delivery_count bigint,

  -- what the message says of itself, by the queue's header mapping then
  job_id bytea,
  message_id bytea,
  correlation_id bytea,
  idempotency_key bytea,
  parent_message_id bytea,
  attempt bigint,
  max_attempts bigint,
  enqueued_at timestamptz,
  redrive_generation bigint,
  redrive_id uuid,

  -- the failure; class and text come from headers, else once from the latest attempt_failed event
  error_class text,
  error_text text,
  error_source text CONSTRAINT quarantine_error_source_known CHECK (error_source IN ('header', 'event')),
  worker_version text,
  kind text NOT NULL CONSTRAINT quarantine_kind_known CHECK (kind IN ('permanent', 'transient')),
  policy_version bigint,
  fingerprint text NOT NULL,
  fingerprint_version integer NOT NULL,
  normalised_text text,

  size_bytes bigint NOT NULL,
  content_type text,
  content_encoding text,
  commitment bytea NOT NULL CONSTRAINT quarantine_commitment_is_32_bytes CHECK (length(commitment) = 32),
  possible_duplicate_of uuid REFERENCES quarantine,

  -- projection of RULES 5's derived state; written only together with the claim or item that it follows from
  disposition text NOT NULL DEFAULT 'held' CONSTRAINT quarantine_disposition_known
    CHECK (disposition IN ('held', 'claimed', 'in_doubt', 'returned_to_queue', 'verified', 'requarantined', 'closed', 'erased')),
  assigned_by uuid REFERENCES users,
  assigned_at timestamptz
);
CREATE INDEX quarantine_by_arrival ON quarantine (arrived_at DESC, id DESC);
CREATE INDEX quarantine_by_queue ON quarantine (queue_id, disposition, arrived_at DESC, id DESC);
CREATE INDEX quarantine_by_job ON quarantine (job_id);
CREATE INDEX quarantine_by_message ON quarantine (message_id);
CREATE INDEX quarantine_by_fingerprint ON quarantine (fingerprint, arrived_at DESC);
CREATE INDEX quarantine_by_redrive ON quarantine (redrive_id) WHERE redrive_id IS NOT NULL;
CREATE INDEX quarantine_by_batch ON quarantine (batch_id);

-- Bytes, key and hashes: one row, erased together.
CREATE TABLE payloads (
  quarantine_id uuid PRIMARY KEY REFERENCES quarantine,
  body bytea NOT NULL,
  -- AMQP property list and field table, as encoded by domain::amqp (type tags kept)
  properties bytea NOT NULL,
  headers bytea,
  commitment_key bytea NOT NULL CONSTRAINT payloads_key_is_32_bytes CHECK (length(commitment_key) = 32),
  sha256 bytea NOT NULL CONSTRAINT payloads_sha256_is_32_bytes CHECK (length(sha256) = 32),
  match_hash bytea NOT NULL CONSTRAINT payloads_match_hash_is_32_bytes CHECK (length(match_hash) = 32)
);
CREATE INDEX payloads_by_match_hash ON payloads (match_hash);

-- A redelivery that a living process knows to be the same message (RULES 2); one for one.
CREATE TABLE absorptions (
  id uuid PRIMARY KEY,
  quarantine_id uuid NOT NULL REFERENCES quarantine,
  batch_id uuid NOT NULL REFERENCES custody_batches,
  epoch bigint NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX absorptions_by_row ON absorptions (quarantine_id);

CREATE TABLE events (
  event_id uuid PRIMARY KEY,
  received_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  sent_by uuid NOT NULL REFERENCES users,
  kind text NOT NULL,
  at timestamptz NOT NULL,
  queue_id uuid NOT NULL REFERENCES queues,
  job_id bytea NOT NULL,
  message_id bytea,
  attempt bigint,
  redrive_generation bigint,
  redrive_id uuid,
  error_class text,
  error_text text,
  worker_version text,
  enqueued_at timestamptz,
  -- the whole event, as it was taken
  event jsonb NOT NULL
);
CREATE INDEX events_by_job ON events (job_id, at);
CREATE INDEX events_by_queue ON events (queue_id, kind, received_at DESC);
CREATE INDEX events_by_redrive ON events (redrive_id) WHERE redrive_id IS NOT NULL;

-- One row per job, kept by intake: what healthy age and in flight are read from.
CREATE TABLE jobs (
  queue_id uuid NOT NULL REFERENCES queues,
  job_id bytea NOT NULL,
  accepted_at timestamptz,
  enqueued_at timestamptz,
  first_started_at timestamptz,
  last_event_at timestamptz NOT NULL,
  last_kind text NOT NULL,
  last_attempt bigint,
  failed_at timestamptz,
  effect_at timestamptz,
  redriven_at timestamptz,
  PRIMARY KEY (queue_id, job_id)
);
CREATE INDEX jobs_unfinished ON jobs (queue_id, enqueued_at) WHERE effect_at IS NULL;

GRANT SELECT, INSERT, UPDATE ON custody_batches, quarantine, payloads, jobs TO lazaret_app;
GRANT SELECT, INSERT ON absorptions, events TO lazaret_app;
