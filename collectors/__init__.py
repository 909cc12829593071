"""Collectors: one package per source, each config · source (I/O) · mapping (pure)."""
