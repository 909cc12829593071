"""Retention: history older than the configured time leaves the store."""

from __future__ import annotations

from string import Template
from typing import TYPE_CHECKING

from lakehouse_core.domain.clock import Clock, utc_now
from lakehouse_core.store.literals import identifier, literal
from lakehouse_core.store.tables import TABLES

if TYPE_CHECKING:
    from datetime import timedelta

    from lakehouse_core.store.owner import OwnerStore

_COUNT = Template("SELECT count(*) AS expired FROM $table WHERE $column < $limit")
_DELETE = Template("DELETE FROM $table WHERE $column < $limit")


def apply_retention(store: OwnerStore, keep: timedelta, clock: Clock = utc_now) -> dict[str, int]:
    """Drop rows older than `keep` and return how many, per table that lost some.

    A table without a `retention_time` keeps everything.
    """
    limit = literal(clock() - keep)
    dropped = {}
    for name, spec in TABLES.items():
        if spec.retention_time is None:
            continue
        values = {
            "table": identifier(name),
            "column": identifier(spec.retention_time),
            "limit": limit,
        }
        expired = store.read(_COUNT.substitute(values)).column("expired")[0].as_py()
        if expired:
            store.transact(name, [_DELETE.substitute(values)])
            dropped[name] = int(expired)
    return dropped
