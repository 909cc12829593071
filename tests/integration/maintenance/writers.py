"""Another engine at work on a table, beside maintenance: appends, deletes, merges, and a model.

The model is what the table must hold, row by row: whatever maintenance does, nothing is lost,
doubled or back.
"""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.expressions import EqualTo
from sqlalchemy.exc import OperationalError

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from pyiceberg.table import Table

    from lakehouse_core.domain.table import TableName
    from tests.integration.maintenance.job.lakes import Lake

DAYS = (20758, 20759, 20760)
KINDS = ("append", "append", "delete", "merge")
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("day", pa.date32()),
        pa.field("kind", pa.string()),
        pa.field("amount", pa.float64()),
    ]
)


class Writer:
    """Writes to a table as other engines do, and keeps what the table must hold."""

    def __init__(
        self,
        lake: Lake,
        table: TableName,
        luck: random.Random,
        catalog: SqlCatalog | None = None,
    ) -> None:
        settings = lake.config.catalogs["lake"]
        self._catalog = catalog or SqlCatalog(
            "lake", uri=f"sqlite:///{settings.path}", warehouse=f"file://{settings.warehouse}"
        )
        self._lake, self.name, self._luck = lake, table, luck
        self._lock = threading.Lock()
        self._copies: list[TableName] = []
        self._next = 1_000
        self.model: dict[int, tuple[int, str]] = {}
        self.done: Counter[str] = Counter()
        self.refused = 0

    def on_copy(self, place: int) -> Writer:
        """A writer of a copy of the table as it is now, which goes its own way from here."""
        table = self._catalog.load_table((*self.name.namespace, self.name.name))
        name = f"{self.name.name}_{place}"
        self._catalog.register_table((*self.name.namespace, name), table.metadata_location)
        copy = Writer(self._lake, replace(self.name, name=name), self._luck, self._catalog)
        copy.model, copy._next = dict(self.model), self._next
        self._copies.append(copy.name)
        return copy

    @property
    def operations(self) -> int:
        """How many were carried out so far."""
        return sum(self.done.values())

    def act(self, least: int = 0, most: int = 2) -> None:
        """A few operations, as luck has it."""
        for _ in range(self._luck.randint(least, most)):
            self.one(self._luck.choice(KINDS))

    def one(self, kind: str) -> None:
        """One operation; somebody faster may have it refused, then nothing of it is written."""
        with self._lock:
            try:
                table = self._catalog.load_table((*self.name.namespace, self.name.name))
                getattr(self, f"_{kind}")(table)
                self.done[kind] += 1
            except (CommitFailedException, ValidationException, OperationalError):
                self.refused += 1

    def delete_by_position(self) -> None:
        """Rows deleted as Spark does in a merge-on-read table."""
        if self.model:
            victim = self._luck.choice(sorted(self.model))
            self._lake.sql(f"DELETE FROM {{t}} WHERE id = {victim}", self.name)  # noqa: S608
            del self.model[victim]
            self.done["delete by position"] += 1

    def expected(self) -> Counter[tuple[int, str]]:
        """What the table must hold."""
        return Counter((one, kind) for one, (_, kind) in self.model.items())

    def found(self) -> Counter[tuple[int, str]]:
        """What it holds."""
        table = self._catalog.load_table((*self.name.namespace, self.name.name))
        rows = table.scan(selected_fields=("id", "kind")).to_arrow()
        ids, kinds = rows.column("id").to_pylist(), rows.column("kind").to_pylist()
        return Counter(zip(ids, kinds, strict=True))

    @contextmanager
    def beside(self) -> Iterator[None]:
        """At work, without a rest, for as long as something else is; at least once."""
        over = threading.Event()

        def work() -> None:
            while True:
                self.act(least=1)
                if over.wait(0.01):
                    return

        thread = threading.Thread(target=work, name="writer")
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def close(self) -> None:
        """Let the copies and the catalog go: what looks at all tables would look at each."""
        for one in self._copies:
            self._catalog.drop_table((*one.namespace, one.name))
        self._catalog.engine.dispose()

    def _append(self, table: Table) -> None:
        rows = {self._next + n: (self._luck.choice(DAYS), "new") for n in range(3)}
        self._next += 3
        table.append(_arrow(rows))
        self.model |= rows

    def _delete(self, table: Table) -> None:
        if self.model:
            victim = self._luck.choice(sorted(self.model))
            table.delete(EqualTo("id", victim))
            del self.model[victim]

    def _merge(self, table: Table) -> None:
        if self.model:
            changed = self._luck.choice(sorted(self.model))
            row = {changed: (self.model[changed][0], f"merged {self._luck.random():.6f}")}
            table.overwrite(_arrow(row), overwrite_filter=EqualTo("id", changed))
            self.model |= row


def _arrow(rows: dict[int, tuple[int, str]]) -> pa.Table:
    days = pa.array([day for day, _ in rows.values()], pa.int32()).cast(pa.date32())
    kinds = pa.array([kind for _, kind in rows.values()])
    amounts = pa.array([float(one) for one in rows])
    return pa.Table.from_arrays([pa.array(list(rows)), days, kinds, amounts], schema=SCHEMA)
