"""Tests of lakehouse_core.views."""
