"""Maintenance: what is planned, decided, carried out in PySpark, proven."""
