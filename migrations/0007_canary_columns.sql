-- Each stratum's latest canary is judged by its own row: the cohort keeps no copy.
ALTER TABLE cohorts DROP COLUMN canary_passed_at, DROP COLUMN canary_worker_versions;
