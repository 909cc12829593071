"""Routing: which engine a statement runs on, and why."""
