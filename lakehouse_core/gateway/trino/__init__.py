"""The Trino HTTP protocol: what its clients send and what they are answered."""
