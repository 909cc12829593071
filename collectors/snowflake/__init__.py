"""The Snowflake source."""
