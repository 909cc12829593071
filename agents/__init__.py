"""The agents process: owns the telemetry store and runs the scheduled jobs."""
