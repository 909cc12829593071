"""SQL understanding through sqlglot: fingerprint, usage, statement kind."""
