-- The largest partitions of a table at a snapshot, and those with the most files, as JSON.
ALTER TABLE table_metrics ADD COLUMN largest_partitions VARCHAR;
