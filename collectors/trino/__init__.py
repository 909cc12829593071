"""The trino source."""
