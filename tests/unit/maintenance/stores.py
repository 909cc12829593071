"""A real store that tests of one module share; each finds it empty, its audit head gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.maintenance.audit import head_file

if TYPE_CHECKING:
    from lakehouse_core.store.owner import OwnerStore

TABLES = ("action", "audit", "decision_request", "table_lease", "lake_table", "table_metrics")


def emptied(store: OwnerStore) -> OwnerStore:
    for name in TABLES:
        store.transact(name, [f"DELETE FROM {name}"])  # noqa: S608 names of our own tables
    head_file(store.path).unlink(missing_ok=True)
    return store
