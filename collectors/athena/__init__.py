"""The Athena source."""
