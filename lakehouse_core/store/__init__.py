"""The telemetry store: one DuckDB file with one owner, served to the other processes over Quack."""
