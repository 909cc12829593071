"""The upsert as SQL: set-based, by key, in one transaction.

Only key columns are read of the rows that are stored already; whole rows only where a key was met
again, found by row id. The cost therefore follows the size of the batch, plus one scan of the keys.
"""

from __future__ import annotations

from functools import lru_cache
from string import Template
from typing import TYPE_CHECKING

from lakehouse_core.store.batch import ROW_NUMBER
from lakehouse_core.store.fold import CHANGED, Step, fold_statements
from lakehouse_core.store.literals import identifier, literal
from lakehouse_core.store.schema import schema_of

if TYPE_CHECKING:
    from lakehouse_core.store.tables import StoreTable

_TURN = Template("UPDATE store_turn SET turn = turn + 1 WHERE table_name = $name")

# Stored rows whose key is in the batch.
_HIT = Template("""
CREATE OR REPLACE TEMP TABLE merge_hit AS
SELECT stored.rowid AS stored_id, incoming._row AS incoming_row
FROM $table AS stored JOIN $source AS incoming ON $same_key
""")

# Incoming rows that change nothing: older than what is stored, or equal but for noise.
_KEEPING = Template("""
CREATE OR REPLACE TEMP TABLE merge_keep AS SELECT incoming_row FROM merge_hit WHERE false
""")
_KEEP = Template("""
INSERT INTO merge_keep
SELECT merge_hit.incoming_row
FROM merge_hit
JOIN $table AS stored ON stored.rowid = merge_hit.stored_id
JOIN $source AS incoming ON incoming._row = merge_hit.incoming_row
WHERE $unchanged
""")

_DELETE = Template("""
DELETE FROM $table WHERE rowid IN (
  SELECT stored_id FROM merge_hit ANTI JOIN merge_keep USING (incoming_row)
)
""")

_INSERT = Template("""
INSERT INTO $table ($columns)
SELECT $columns FROM $source AS incoming
WHERE NOT EXISTS (SELECT 1 FROM merge_keep WHERE merge_keep.incoming_row = incoming._row)
""")

_CHANGED = Template("""
SELECT (SELECT count(*) FROM $source) - (SELECT count(*) FROM merge_keep) AS changed
""")


_ANY_HIT = "FROM merge_hit LIMIT 1"
_STEPS = ((_TURN, None), (_HIT, None), (_KEEPING, None), (_KEEP, _ANY_HIT), (_DELETE, _ANY_HIT),
          (_INSERT, None))  # fmt: skip


@lru_cache
def merge_steps(spec: StoreTable, source: str) -> tuple[Step, ...]:
    """What to run, in order, inside one transaction.

    Args:
        spec: the table.
        source: SQL of a relation with the table's columns and `_row`, each key once (a table
            that folds takes a key as often as it comes).
    """
    columns = schema_of(spec.name).names
    if spec.fold is not None:
        unchanged = _unchanged(spec, columns)
        return (
            Step(turn_statement(spec)),
            *fold_statements(spec, spec.fold, columns, source, unchanged),
        )
    values = {
        "name": literal(spec.name),
        "table": identifier(spec.name),
        "source": source,
        "columns": ", ".join(identifier(name) for name in columns),
        "same_key": " AND ".join(_equal(name) for name in spec.key),
        "unchanged": _unchanged(spec, columns),
    }
    return tuple(Step(one.substitute(values), worklist) for one, worklist in _STEPS)


def turn_statement(spec: StoreTable) -> str:
    """Takes the table's turn: of two overlapping transactions the second is refused."""
    return _TURN.substitute(name=literal(spec.name))


def changed_query(spec: StoreTable, source: str) -> str:
    """How many rows the merge in this session wrote; run it after the commit."""
    if spec.fold is not None:
        return CHANGED
    return _CHANGED.substitute(source=source)


def merge_script(spec: StoreTable, source: str) -> str:
    """The whole upsert as one text; its result is the number of rows written."""
    steps = [step.sql for step in merge_steps(spec, source)]
    return ";\n".join(("BEGIN TRANSACTION", *steps, "COMMIT", changed_query(spec, source)))


def _equal(name: str) -> str:
    return f"stored.{identifier(name)} = incoming.{identifier(name)}"


def _unchanged(spec: StoreTable, columns: list[str]) -> str:
    ignored = {*spec.key, *spec.noise, ROW_NUMBER}
    same = " AND ".join(
        f"stored.{identifier(name)} IS NOT DISTINCT FROM incoming.{identifier(name)}"
        for name in columns
        if name not in ignored
    )
    if spec.fold is not None:
        # Never true, but DuckDB cannot know: it would join all stored rows by these columns.
        return f"({same} OR stored.rowid < 0)"
    if spec.revision is None:
        return same or "true"
    revision = identifier(spec.revision)
    return f"({same or 'true'}) OR incoming.{revision} < stored.{revision}"
