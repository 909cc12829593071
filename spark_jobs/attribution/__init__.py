"""Costs in the pipeline: charges are split over queries, hour by hour, as Iceberg tables."""
