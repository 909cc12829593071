"""Iceberg scan and commit reports, as its REST specification has them; pushed to our ingest."""
