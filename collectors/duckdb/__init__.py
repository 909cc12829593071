"""The duckdb source."""
