"""Trino over HTTP."""
