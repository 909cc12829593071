"""Spark through Spark Connect."""
