"""The Iceberg catalog: table metadata, manifest cache, metrics."""
