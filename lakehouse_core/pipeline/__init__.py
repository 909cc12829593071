"""The telemetry pipeline seen from the store: export, run the Spark job, load gold back."""
