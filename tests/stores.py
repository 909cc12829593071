"""Real stores at little cost: a new one is a copy of a migrated file, a shared one is emptied.

with new_store(folder) as store: …        # a store of this test's own
emptied(shared_store)                     # the worker's one store, with nothing in it
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from lakehouse_core.maintenance.audit import head_file
from lakehouse_core.store.owner import OwnerStore
from lakehouse_core.store.tables import TABLES

FILE = "telemetry.duckdb"
# Rows that were deleted may be counted: a table that is named here is empty at worst.
_FULL = """
SELECT table_name FROM duckdb_tables()
WHERE database_name = current_database() AND NOT temporary AND estimated_size > 0
"""


def new_store(folder: Path) -> OwnerStore:
    """A store in a folder that has none yet, not served; migrating each anew costs far more."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(_migrated(), folder / FILE)
    return OwnerStore.at(folder)


def emptied(store: OwnerStore) -> OwnerStore:
    """The same store without a row in it, and without the head of its audit."""
    full = set(store.read(_FULL)["table_name"].to_pylist()) & TABLES.keys()
    if full:
        gone = [f"DELETE FROM {name}" for name in sorted(full)]  # noqa: S608 our own names
        store.transact("query_event", gone)
    head_file(store.path).unlink(missing_ok=True)
    return store


@cache
def _migrated() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="store-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    OwnerStore.at(folder).close()
    return folder / FILE
