-- The largest partitions of a table at a snapshot, and those with the most files, as JSON.
ALTER TABLE table_metrics ADD COLUMN largest_partitions VARCHAR;

-- Small files that are the only small one of their partition: there is nothing to put them together with.
ALTER TABLE table_metrics ADD COLUMN lone_small_files BIGINT;
