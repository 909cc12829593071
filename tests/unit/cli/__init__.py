"""Tests of lakehouse_core.cli."""
