"""Table health: rules, states, a score that explains itself."""

from lakehouse_core.health.assess import assess, assess_table
from lakehouse_core.health.thresholds import thresholds_for

__all__ = ["assess", "assess_table", "thresholds_for"]
