"""Rows of some hours in the place of others, also where their types are spelled otherwise."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

from lakehouse_core.store.replace import replacement
from lakehouse_core.store.schema import schema_of
from tests.factories import NOW

if TYPE_CHECKING:
    from lakehouse_core.store.owner import OwnerStore

TABLE, HOUR = "template_hour", timedelta(hours=1)


def rows(*templates: str, runs: int = 1) -> pa.Table:
    """Rows of an hour as a reader of Iceberg gives them: all nullable, lists with other names."""
    given = {"hour_at": NOW, "runs": runs, "elapsed_sketch": [{"bucket": 1, "runs": runs}]}
    columns = []
    for field in schema_of(TABLE):
        kind = (
            pa.list_(pa.field("l", field.type.value_type))
            if pa.types.is_list(field.type)
            else field.type
        )
        plain = "" if pa.types.is_string(kind) else None if field.nullable else 0
        values = [
            name if field.name == "template_id" else given.get(field.name, plain)
            for name in templates
        ]
        columns.append(pa.array(values, kind))
    return pa.Table.from_arrays(columns, names=schema_of(TABLE).names)


def test_what_is_no_longer_told_is_emptied(store: OwnerStore) -> None:
    store.upsert(TABLE, replacement(store, TABLE, [NOW], rows("a", "b"), time="hour_at"))
    store.upsert(TABLE, replacement(store, TABLE, [NOW], rows("b", "c", runs=2), time="hour_at"))
    found = store.read("SELECT template_id, runs FROM template_hour ORDER BY ALL").to_pylist()
    assert found == [
        {"template_id": "a", "runs": 0},
        {"template_id": "b", "runs": 2},
        {"template_id": "c", "runs": 2},
    ]


def test_other_hours_stay_as_they_are(store: OwnerStore) -> None:
    store.upsert(TABLE, replacement(store, TABLE, [NOW], rows("a"), time="hour_at"))
    empty = rows("a").slice(0, 0)
    store.upsert(TABLE, replacement(store, TABLE, [NOW - HOUR], empty, time="hour_at"))
    assert store.read("SELECT runs FROM template_hour").to_pylist() == [{"runs": 1}]
