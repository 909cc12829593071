"""The Iceberg source: every table of the catalogs, its structure and its commits."""
