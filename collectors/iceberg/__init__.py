"""The iceberg source."""
