"""Which limits apply to a table: the defaults, with the best-fitting override laid over them.

A pattern is a shell glob on the table id; `*` also crosses dots (`lake.demo.*`, `*.events`). Of
several patterns that fit, the one with the most literal characters wins, then the one with the
fewest wildcards, then the later one. An override changes only the limits it names.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lakehouse_core.config.models import HealthConfig, HealthThresholds

_WILDCARDS = "*?["


def thresholds_for(config: HealthConfig, table_id: str) -> HealthThresholds:
    """The limits for one table."""
    fitting = [pattern for pattern in config.tables if fnmatchcase(table_id, pattern)]
    if not fitting:
        return config.defaults
    order = list(config.tables)
    best = max(fitting, key=lambda pattern: (*_specificity(pattern), order.index(pattern)))
    override = config.tables[best]
    named = {name: getattr(override, name) for name in override.model_fields_set}
    return config.defaults.model_copy(update=named)


def _specificity(pattern: str) -> tuple[int, int]:
    wildcards = sum(pattern.count(one) for one in _WILDCARDS)
    return len(pattern) - wildcards, -wildcards
