-- What the table itself asks for as the size of its files, where it does.
ALTER TABLE table_metrics ADD COLUMN target_file_bytes BIGINT;

-- How many position delete files fewer there are when those of one data file, or of one partition, are put together.
ALTER TABLE table_metrics ADD COLUMN mergeable_delete_files BIGINT;

-- Snapshots that branches and tags keep, but for the current one, and the age of the oldest that none keeps.
ALTER TABLE table_metrics ADD COLUMN ref_snapshot_ids BIGINT[];
ALTER TABLE table_metrics ADD COLUMN oldest_free_snapshot_at TIMESTAMPTZ;
