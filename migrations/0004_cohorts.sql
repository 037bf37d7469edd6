-- Cohorts, plans, reviews, items, claims, epochs.

CREATE TABLE cohorts (
  id uuid PRIMARY KEY,
  queue_id uuid NOT NULL REFERENCES queues,
  title text NOT NULL,
  reason text NOT NULL,
  -- domain::api::Draft as last saved; what the digest covers is in cohort_revisions
  draft jsonb NOT NULL,
  state text NOT NULL DEFAULT 'draft',
  state_reason text,
  -- where `paused` resumes to
  resumes_to text,
  revision bigint NOT NULL DEFAULT 1,
  version bigint NOT NULL DEFAULT 1,
  size integer NOT NULL,
  created_by uuid NOT NULL REFERENCES users,
  created_at timestamptz NOT NULL DEFAULT now(),
  submitted_at timestamptz,
  -- broker, vhost and name of the queue that the lane is for; set at submit
  lane text,
  target_exchange text,
  target_routing_key text,
  expires_at timestamptz,
  run_by timestamptz,
  policy_version bigint,
  generation bigint,
  approval_consumed_at timestamptz,
  stratum integer NOT NULL DEFAULT 0,
  verify_extended boolean NOT NULL DEFAULT false,
  canary_passed_at timestamptz,
  canary_worker_versions text[] NOT NULL DEFAULT '{}',
  -- set by a resume: exactly one item goes out before the rest
  probation boolean NOT NULL DEFAULT false,
  published_twice boolean NOT NULL DEFAULT false,
  CONSTRAINT cohorts_state_known CHECK (state IN ('draft', 'in_review', 'approved', 'canary_running', 'canary_verifying',
    'canary_passed', 'canary_failed', 'expanding', 'paused', 'aborting', 'aborted', 'settling', 'completed',
    'rejected', 'withdrawn', 'expired')),
  CONSTRAINT cohorts_paused_knows_where CHECK ((state = 'paused') = (resumes_to IS NOT NULL)),
  CONSTRAINT cohorts_lane_known CHECK (state IN ('draft', 'withdrawn') OR lane IS NOT NULL)
);
-- RULES 7: one cohort per target queue.
CREATE UNIQUE INDEX cohorts_one_per_lane ON cohorts (lane)
  WHERE state IN ('canary_running', 'canary_verifying', 'canary_passed', 'expanding', 'paused', 'aborting');
CREATE INDEX cohorts_by_creation ON cohorts (created_at DESC, id DESC);
CREATE INDEX cohorts_by_state ON cohorts (state);

-- The plan of each revision, frozen: what a digest names stays readable.
CREATE TABLE cohort_revisions (
  cohort_id uuid NOT NULL REFERENCES cohorts,
  revision bigint NOT NULL,
  plan bytea NOT NULL,
  digest bytea NOT NULL CONSTRAINT cohort_revisions_digest_is_32_bytes CHECK (length(digest) = 32),
  preflight jsonb,
  preflight_at timestamptz,
  saved_by uuid NOT NULL REFERENCES users,
  saved_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (cohort_id, revision)
);

-- RULES 4: whoever touched any revision doesn't approve.
CREATE TABLE cohort_touches (
  cohort_id uuid NOT NULL REFERENCES cohorts,
  user_id uuid NOT NULL REFERENCES users,
  revision bigint NOT NULL,
  how text NOT NULL CONSTRAINT cohort_touches_how_known CHECK (how IN ('drafted', 'edited', 'submitted')),
  at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (cohort_id, user_id, revision, how)
);

CREATE TABLE cohort_reviews (
  id uuid PRIMARY KEY,
  cohort_id uuid NOT NULL REFERENCES cohorts,
  revision bigint NOT NULL,
  user_id uuid NOT NULL REFERENCES users,
  decision text NOT NULL
    CONSTRAINT cohort_reviews_decision_known CHECK (decision IN ('approve', 'request_changes', 'reject', 'revoke')),
  digest bytea NOT NULL,
  comment text NOT NULL,
  at timestamptz NOT NULL DEFAULT now(),
  voided_at timestamptz
);
-- One person counts once.
CREATE UNIQUE INDEX cohort_reviews_one_approval ON cohort_reviews (cohort_id, revision, user_id)
  WHERE decision = 'approve' AND voided_at IS NULL;

CREATE TABLE cohort_items (
  id uuid PRIMARY KEY,
  cohort_id uuid NOT NULL REFERENCES cohorts,
  quarantine_id uuid NOT NULL REFERENCES quarantine,
  position integer NOT NULL,
  stratum integer NOT NULL,
  job_id bytea,
  canary boolean NOT NULL DEFAULT false,
  state text NOT NULL DEFAULT 'held',
  state_reason text,
  redrive_id uuid,
  generation bigint,
  publish_number bigint,
  epoch bigint,
  connection text,
  published_at timestamptz,
  confirmed_at timestamptz,
  -- the worker's events say that its job ended; in flight is confirmed and not finished
  finished_at timestamptz,
  verify boolean NOT NULL DEFAULT false,
  CONSTRAINT cohort_items_state_known CHECK (state IN ('held', 'scheduled', 'publishing', 'confirmed', 'verified', 'unverified',
    'verification_failed', 'requarantined', 'returned', 'refused', 'nacked', 'in_doubt', 'resolved_arrived', 'resolved_not_published')),
  CONSTRAINT cohort_items_publishing_is_traceable CHECK (state <> 'publishing'
    OR (redrive_id IS NOT NULL AND epoch IS NOT NULL AND connection IS NOT NULL AND published_at IS NOT NULL)),
  CONSTRAINT cohort_items_position_unique UNIQUE (cohort_id, position),
  CONSTRAINT cohort_items_message_once UNIQUE (cohort_id, quarantine_id),
  CONSTRAINT cohort_items_redrive_unique UNIQUE (redrive_id)
);
CREATE INDEX cohort_items_by_state ON cohort_items (cohort_id, state, position);
CREATE INDEX cohort_items_by_message ON cohort_items (quarantine_id);
CREATE INDEX cohort_items_by_job ON cohort_items (job_id);

-- RULES 5: each step is a row. Evidence that moves nothing (a late confirm) is a step from a state to itself.
CREATE TABLE item_steps (
  id uuid PRIMARY KEY,
  item_id uuid NOT NULL REFERENCES cohort_items,
  from_state text,
  to_state text NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  epoch bigint,
  -- `event`, `dead_letter`, `probe`, `late_confirm`, `confirm`, `takeover`, `person`, …
  source text NOT NULL,
  cause text NOT NULL
);
CREATE INDEX item_steps_by_item ON item_steps (item_id, at);

CREATE TABLE item_resolutions (
  id uuid PRIMARY KEY,
  item_id uuid NOT NULL REFERENCES cohort_items,
  outcome text NOT NULL CONSTRAINT item_resolutions_outcome_known CHECK (outcome IN ('arrived', 'not_published')),
  by_id uuid NOT NULL REFERENCES users,
  reason text NOT NULL,
  at timestamptz NOT NULL DEFAULT now(),
  confirmed_by uuid REFERENCES users,
  confirmed_at timestamptz,
  superseded_at timestamptz,
  CONSTRAINT item_resolutions_two_people CHECK (confirmed_by <> by_id)
);
CREATE UNIQUE INDEX item_resolutions_one_open ON item_resolutions (item_id) WHERE superseded_at IS NULL;

-- RULES 3: taken at submit, held until the cohort is terminal.
CREATE TABLE message_claims (
  quarantine_id uuid NOT NULL REFERENCES quarantine,
  cohort_id uuid NOT NULL REFERENCES cohorts,
  CONSTRAINT message_claims_once PRIMARY KEY (quarantine_id)
);
CREATE INDEX message_claims_by_cohort ON message_claims (cohort_id);
CREATE TABLE job_claims (
  job_id bytea NOT NULL,
  cohort_id uuid NOT NULL REFERENCES cohorts,
  CONSTRAINT job_claims_once PRIMARY KEY (job_id)
);
CREATE INDEX job_claims_by_cohort ON job_claims (cohort_id);

-- Every epoch that a cohort ever had. Fenced: each stopped, or closed at the broker and seen gone.
CREATE TABLE cohort_epochs (
  cohort_id uuid NOT NULL REFERENCES cohorts,
  epoch bigint NOT NULL,
  owner text NOT NULL,
  connection text,
  granted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  stopped_at timestamptz,
  closed_at timestamptz,
  PRIMARY KEY (cohort_id, epoch)
);

CREATE TABLE canaries (
  item_id uuid PRIMARY KEY REFERENCES cohort_items,
  cohort_id uuid NOT NULL REFERENCES cohorts,
  stratum integer NOT NULL,
  started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  confirmed_at timestamptz,
  deadline_at timestamptz,
  before jsonb,
  after jsonb,
  expectations jsonb NOT NULL DEFAULT '[]',
  attributed_by text,
  worker_version text,
  verdict text CONSTRAINT canaries_verdict_known CHECK (verdict IN ('pass', 'fail', 'inconclusive')),
  verdict_reason text,
  judged_at timestamptz
);
CREATE INDEX canaries_by_cohort ON canaries (cohort_id, stratum, started_at);

CREATE TABLE replay_decisions (
  id uuid PRIMARY KEY,
  cohort_id uuid NOT NULL REFERENCES cohorts,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  epoch bigint NOT NULL,
  decision text NOT NULL,
  readings jsonb NOT NULL
);
CREATE INDEX replay_decisions_by_cohort ON replay_decisions (cohort_id, at DESC);

-- Stages, for the page; the log of decisions is audit_entries.
CREATE TABLE cohort_stages (
  id uuid PRIMARY KEY,
  cohort_id uuid NOT NULL REFERENCES cohorts,
  state text NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  by_id uuid REFERENCES users,
  reason text
);
CREATE INDEX cohort_stages_by_cohort ON cohort_stages (cohort_id, at);

GRANT SELECT, INSERT, UPDATE ON cohorts, cohort_revisions, cohort_reviews, cohort_items, item_resolutions, cohort_epochs, canaries
  TO lazaret_app;
GRANT SELECT, INSERT ON cohort_touches, item_steps, replay_decisions, cohort_stages TO lazaret_app;
GRANT SELECT, INSERT, DELETE ON message_claims, job_claims TO lazaret_app;
-- a draft's list is frozen anew when its selection is edited
GRANT DELETE ON cohort_items TO lazaret_app;
