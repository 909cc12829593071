"""DuckDB, embedded: reads the lake's Iceberg tables in the process that asks."""
