-- What was done about a damaged store file, so that people hear of it and not only the log.
CREATE TABLE store_recovery (
  recovered_at TIMESTAMPTZ NOT NULL, reason VARCHAR NOT NULL, quarantined VARCHAR[] NOT NULL, restored_from VARCHAR
);
