"""Maintenance of Iceberg tables in PySpark: a plan in, commits and a report out."""
