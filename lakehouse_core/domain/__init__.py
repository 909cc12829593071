"""Frozen records and pure functions; imports nothing of ours."""
