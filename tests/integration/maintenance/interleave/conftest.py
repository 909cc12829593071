"""The warm Spark session of the job's tests."""

from tests.integration.maintenance.job.conftest import lake, spark

__all__ = ["lake", "spark"]
