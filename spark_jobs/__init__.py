"""Lone PySpark files; they import nothing of ours but the pure modules shipped with them."""
