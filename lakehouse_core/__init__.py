"""Lakehelm's core: everything that is not a page, an agent, a collector or a Spark job."""
