"""Iceberg tables for engine tests, written without any engine."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakehouse_core.catalog import open_catalog
from tests.factories import unique

if TYPE_CHECKING:
    from lakehouse_core.config import Config

TYPES = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("small", pa.int32()),
        pa.field("price", pa.decimal128(12, 2)),
        pa.field("day", pa.date32()),
        pa.field("seen_at", pa.timestamp("us", tz="UTC")),
        pa.field("local_at", pa.timestamp("us")),
        pa.field("name", pa.string()),
        pa.field("is_ok", pa.bool_()),
        pa.field("ratio", pa.float64()),
    ]
)
ROWS: list[dict[str, Any]] = [
    {
        "id": 1,
        "small": 7,
        "price": Decimal("12345.67"),
        "day": date(2026, 2, 28),
        "seen_at": datetime(2026, 11, 1, 23, 59, 59, 999_999, tzinfo=UTC),
        "local_at": datetime(2026, 3, 29, 2, 30, 0, 1),  # noqa: DTZ001 a local time on purpose
        "name": "Zoë · 東京 🌊 'quoted' \"too\"",
        "is_ok": True,
        "ratio": 0.1,
    },
    {
        "id": -(2**63),
        "small": -(2**31),
        "price": Decimal("-0.01"),
        "day": date(1969, 12, 31),
        "seen_at": datetime(1969, 12, 31, 23, 59, 59, 1, tzinfo=UTC),
        "local_at": datetime(1900, 1, 1),  # noqa: DTZ001 as above
        "name": "",
        "is_ok": False,
        "ratio": -1.5e300,
    },
    dict.fromkeys(TYPES.names) | {"id": 3},
]


@dataclass(frozen=True, slots=True)
class Table:
    """A table in a namespace of its own."""

    config: Config
    name: str  # lake.<namespace>.<table>

    def sql(self, text: str) -> str:
        """A statement with the table's name for each `@types`."""
        return text.replace("@types", self.name)

    def append(self, rows: list[dict[str, Any]]) -> int:
        """Commit rows; returns the id of the new snapshot."""
        with closing(open_catalog("lake", self.config.catalogs["lake"]).iceberg()) as catalog:
            table = catalog.load_table(self.name.removeprefix("lake."))
            table.append(pa.Table.from_pylist(rows, schema=TYPES))
            snapshot = table.current_snapshot()
        assert snapshot is not None
        return snapshot.snapshot_id


def create_table(config: Config, rows: list[dict[str, Any]]) -> Table:
    """A new table with these rows, in one snapshot."""
    catalog_config = config.catalogs["lake"]
    catalog_config.path.parent.mkdir(parents=True, exist_ok=True)
    catalog_config.warehouse.mkdir(parents=True, exist_ok=True)
    namespace = unique("contract").replace("-", "_")
    with closing(open_catalog("lake", catalog_config).iceberg()) as catalog:
        catalog.create_namespace(namespace)
        catalog.create_table(f"{namespace}.types", schema=TYPES)
    table = Table(config, f"lake.{namespace}.types")
    if rows:
        table.append(rows)
    return table
