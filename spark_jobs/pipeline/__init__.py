"""The telemetry pipeline, stage by stage: bronze → texts → silver → gold, as Iceberg tables."""
