"""Table health: rules, score, state."""
