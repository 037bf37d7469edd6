-- One active cohort per job (RULES 3), and a job belongs to a queue (RULES 1): the same id elsewhere is another job.
ALTER TABLE job_claims ADD COLUMN queue_id uuid REFERENCES queues;
UPDATE job_claims SET queue_id = cohorts.queue_id FROM cohorts WHERE cohorts.id = job_claims.cohort_id;
ALTER TABLE job_claims ALTER COLUMN queue_id SET NOT NULL;
ALTER TABLE job_claims DROP CONSTRAINT job_claims_once;
ALTER TABLE job_claims ADD CONSTRAINT job_claims_once PRIMARY KEY (queue_id, job_id);

-- The application never deletes these; a draft's list is frozen once, when it is made.
REVOKE DELETE ON cohort_items FROM lazaret_app;
REVOKE DELETE ON leases FROM lazaret_app;
-- Evidence is written once.
REVOKE UPDATE ON payloads FROM lazaret_app;

CREATE INDEX quarantine_by_first_delivery ON quarantine (possible_duplicate_of) WHERE possible_duplicate_of IS NOT NULL;

-- Names within a lane are escaped, so that no two queues share one.
UPDATE cohorts SET lane = queues.broker_id || '/' || replace(replace(queues.vhost, '%', '%25'), '/', '%2F') || '/'
    || replace(replace(substr(cohorts.lane, length(queues.broker_id || '/' || queues.vhost || '/') + 1), '%', '%25'), '/', '%2F')
  FROM queues WHERE queues.id = cohorts.queue_id AND cohorts.lane IS NOT NULL;
