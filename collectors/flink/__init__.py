"""The flink source."""
