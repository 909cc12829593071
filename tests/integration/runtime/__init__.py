"""Engines as we start them."""
