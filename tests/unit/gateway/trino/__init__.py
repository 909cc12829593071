"""Tests of the Trino front end."""
