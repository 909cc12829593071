"""The spark source."""
