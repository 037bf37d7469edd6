-- How often a message on the queue may have come back through custody (domain::given_back), and how many of these a
-- person excused. A quorum queue drops what came back more often than its delivery limit.
ALTER TABLE dead_letter_queues
  ADD COLUMN given_back_at_most integer NOT NULL DEFAULT 0,
  ADD COLUMN given_back_excused integer NOT NULL DEFAULT 0,
  ADD CONSTRAINT dead_letter_queues_given_back_is_a_count
    CHECK (given_back_at_most >= 0 AND given_back_excused BETWEEN 0 AND given_back_at_most);

-- Custody looks for the failure that a worker reported, by job (events_by_job) or by message.
CREATE INDEX events_by_failed_message ON events (message_id) WHERE kind = 'attempt_failed' AND error_class IS NOT NULL;
