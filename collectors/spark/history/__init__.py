"""Spark's history from a history server, for those whose event logs are out of reach."""
