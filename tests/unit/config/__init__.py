"""Tests of lakehouse_core.config."""
