"""The upsert of query_event: reports of several observers about one query become one row.

Each value of a report has a rank: how far the query was (`revision`), then who says so
(`reporter`). A value gives way to one of a higher rank, of two equals the greater stays, and what a
report does not know has no rank. That is the greatest element of a total order per column, so it
does not matter in which order reports arrive, nor how often. `known_by` keeps the ranks of a row
that came from more than one report, one letter per column; NULL: they follow from the row itself.

A report of the gateway that does not know the engine's id yet bears `query_id = gateway_id`. It is
folded into the engine's row with that gateway id, whichever of the two comes first. A gateway id
stands for one query per engine; were there two, the smaller id is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import Template
from typing import TYPE_CHECKING

from lakehouse_core.store.literals import identifier, literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse_core.store.tables import Fold, StoreTable


@dataclass(frozen=True, slots=True)
class Step:
    """A statement of an upsert.

    Attributes:
        sql: the statement.
        worklist: SQL that tells a row of what it works on. Where there is none it does nothing, but
            to plan it takes longer than all the others.
    """

    sql: str
    worklist: str | None = None


_UNKNOWN = " "  # below every letter
_FINAL = 3  # above every revision

# Gateway ids of reports that know no other id, and those that an engine's id belongs to. Tables,
# because DuckDB does not scan what is joined with an empty table, as long as the stored side has no
# condition of its own: those stand in the joins below.
_WANTED = Template("""
CREATE OR REPLACE TEMP TABLE merge_wanted AS
SELECT _row, engine_id, gateway_id FROM $source WHERE query_id = gateway_id
""")
_KNOWN = Template("""
CREATE OR REPLACE TEMP TABLE merge_known AS
SELECT engine_id, gateway_id, min(query_id) AS query_id FROM $source
WHERE query_id <> gateway_id GROUP BY ALL
""")

# The row each report belongs to: its own key, or that of the query its gateway id stands for.
_HOME = Template("""
CREATE OR REPLACE TEMP TABLE merge_home AS
WITH found AS (
  SELECT engine_id, gateway_id, min(query_id) AS query_id FROM (
    FROM merge_known
    UNION ALL
    SELECT stored.engine_id, stored.gateway_id, stored.query_id
    FROM $table AS stored SEMI JOIN merge_wanted AS wanted
      ON stored.engine_id = wanted.engine_id AND stored.gateway_id = wanted.gateway_id
      AND stored.query_id <> wanted.gateway_id
  ) GROUP BY ALL
)
SELECT _row, engine_id, query_id FROM $source WHERE query_id IS DISTINCT FROM gateway_id
UNION ALL
SELECT _row, engine_id, coalesce(query_id, gateway_id)
FROM merge_wanted LEFT JOIN found USING (engine_id, gateway_id)
""")
_KEY = Template("""
CREATE OR REPLACE TEMP TABLE merge_key AS
SELECT engine_id, query_id, count(*) AS reports, min(_row) AS _row FROM merge_home
GROUP BY engine_id, query_id
""")

# Stored rows that the reports are about: by their own key, and provisional ones by gateway id.
_HIT = Template("""
CREATE OR REPLACE TEMP TABLE merge_hit AS
SELECT stored.rowid AS stored_id, stored.engine_id, stored.query_id, key.reports, key._row
FROM $table AS stored JOIN merge_key AS key
  ON stored.engine_id = key.engine_id AND stored.query_id = key.query_id
""")
_PROVISIONAL = Template("""
CREATE OR REPLACE TEMP TABLE merge_provisional AS
SELECT stored.rowid AS stored_id, known.engine_id, known.query_id
FROM $table AS stored JOIN merge_known AS known
  ON stored.engine_id = known.engine_id AND stored.query_id = known.gateway_id
WHERE stored.gateway_id IS NOT DISTINCT FROM known.gateway_id
""")

# Queries with one new report and one stored row. Joined with stored rows below: a table, because
# its size is known, and where it is empty nothing stored is looked at.
_PAIR = Template("""
CREATE OR REPLACE TEMP TABLE merge_pair AS
SELECT engine_id, query_id, _row, stored_id
FROM merge_hit ANTI JOIN merge_provisional USING (engine_id, query_id)
WHERE reports = 1
""")

# Those of which the report says exactly what is stored.
_KEEPING = Template("""
CREATE OR REPLACE TEMP TABLE merge_keep AS SELECT engine_id, query_id FROM merge_pair WHERE false
""")
_KEEP = Template("""
INSERT INTO merge_keep
SELECT merge_pair.engine_id, merge_pair.query_id
FROM merge_pair
JOIN $table AS stored ON stored.rowid = merge_pair.stored_id
JOIN $source AS incoming ON incoming._row = merge_pair._row
WHERE $unchanged
""")

# Queries of which more than one report, new or stored, has to be put together.
_MANY = Template("""
CREATE OR REPLACE TEMP TABLE merge_many AS
SELECT engine_id, query_id FROM merge_key WHERE reports > 1
UNION SELECT engine_id, query_id FROM merge_hit ANTI JOIN merge_keep USING (engine_id, query_id)
UNION SELECT engine_id, query_id FROM merge_provisional
""")
_NEW_PART = Template("""
CREATE OR REPLACE TEMP TABLE merge_new_part AS
FROM merge_home SEMI JOIN merge_many USING (engine_id, query_id)
""")
_STORED_PART = Template("""
CREATE OR REPLACE TEMP TABLE merge_stored_part AS
SELECT stored_id, engine_id, query_id
FROM merge_hit SEMI JOIN merge_many USING (engine_id, query_id)
UNION ALL FROM merge_provisional
""")

_FOLD = Template("""
CREATE OR REPLACE TEMP TABLE merge_folded AS
WITH report AS (
  SELECT part.engine_id, part.query_id, $columns
  FROM merge_new_part AS part JOIN $source AS row ON row._row = part._row
  UNION ALL
  SELECT part.engine_id, part.query_id, $columns
  FROM merge_stored_part AS part JOIN $table AS row ON row.rowid = part.stored_id
),
letter AS (SELECT *, $engine_rank AS engine_rank, $gateway_rank AS gateway_rank FROM report),
folded AS (SELECT engine_id, query_id, $winners FROM letter GROUP BY engine_id, query_id),
plain AS (SELECT engine_id, query_id, $values, $ranks AS ranks FROM folded),
again AS (SELECT *, $engine_rank AS engine_rank, $gateway_rank AS gateway_rank FROM plain)
SELECT * EXCLUDE (ranks, engine_rank, gateway_rank), nullif(ranks, $own_ranks) AS known_by
FROM again
""")

# A row that was put together and is what is stored already stays where it is.
_SETTLE = Template("""
INSERT INTO merge_keep
SELECT incoming.engine_id, incoming.query_id
FROM merge_folded AS incoming
JOIN merge_hit USING (engine_id, query_id)
JOIN $table AS stored ON stored.rowid = merge_hit.stored_id
WHERE $unchanged AND NOT EXISTS (
  SELECT 1 FROM merge_provisional AS other
  WHERE other.engine_id = incoming.engine_id AND other.query_id = incoming.query_id
)
""")

_DELETE = Template("""
DELETE FROM $table WHERE rowid IN (
  SELECT stored_id FROM merge_stored_part ANTI JOIN merge_keep USING (engine_id, query_id)
)
""")

_INSERT_FOLDED = Template("""
INSERT INTO $table BY NAME
SELECT * FROM merge_folded ANTI JOIN merge_keep USING (engine_id, query_id)
""")

# Most reports are the first of their query: what is told apart here are the few that are not.
_MET = Template("""
CREATE OR REPLACE TEMP TABLE merge_met AS
SELECT _row FROM merge_home SEMI JOIN (
  SELECT engine_id, query_id FROM merge_hit UNION ALL FROM merge_many
) AS met USING (engine_id, query_id)
""")
_INSERT_NEW = Template("""
INSERT INTO $table BY NAME
SELECT * EXCLUDE (_row) FROM $source AS incoming ANTI JOIN merge_met USING (_row)
""")

# Each with its worklist.
_STEPS: tuple[tuple[str | None, tuple[Template, ...]], ...] = (
    (None, (_WANTED, _KNOWN, _HOME, _KEY, _HIT, _PROVISIONAL, _PAIR, _KEEPING)),
    ("FROM merge_pair LIMIT 1", (_KEEP,)),
    (None, (_MANY,)),
    (
        "FROM merge_many LIMIT 1",
        (_NEW_PART, _STORED_PART, _FOLD, _SETTLE, _DELETE, _INSERT_FOLDED),
    ),
    (None, (_MET, _INSERT_NEW)),
)

CHANGED = """
SELECT (SELECT count(*) FROM merge_key) - (SELECT count(*) FROM merge_keep) AS changed
"""


def fold_statements(
    spec: StoreTable, fold: Fold, columns: Sequence[str], source: str, unchanged: str
) -> tuple[Step, ...]:
    """What to run, in order, inside one transaction.

    Args:
        spec: the table.
        fold: how its reports are weighed.
        columns: of the table.
        source: SQL of a relation with the table's columns and `_row`; a key may come repeatedly.
        unchanged: SQL that compares `incoming` with `stored`.
    """
    order = f"[{', '.join(literal(name) for name in fold.reporters)}]"
    place = f"coalesce(list_position({order}, reporter), list_position({order}, 'history'))"
    merged = [name for name in columns if name not in {*spec.key, "known_by"}]
    # What sums a row up is not weighed: the latest look, the furthest state, the best reporter.
    summed = {
        "collected_at": "max(collected_at)",
        "revision": "max(revision)",
        "reporter": f"({order})[max({place})]",
    }
    weighed = [_Column(name, fold) for name in merged if name not in summed]
    by_engine = f"revision * {len(fold.reporters)} + {place}"
    by_gateway = f"CASE reporter WHEN 'gateway' THEN {_FINAL * len(fold.reporters) + 1} + revision"
    values = {
        "table": identifier(spec.name),
        "source": source,
        "unchanged": unchanged,
        "columns": ", ".join(f"row.{identifier(name)}" for name in (*merged, "known_by")),
        "engine_rank": _letter(by_engine),
        "gateway_rank": _letter(f"{by_gateway} ELSE {by_engine} END"),
        "winners": ", ".join(
            [column.winner(number) for number, column in enumerate(weighed, start=1)]
            + [f"{how} AS {name}" for name, how in summed.items()]
        ),
        "values": ", ".join([f"{c.sql}.value AS {c.sql}" for c in weighed] + [*summed]),
        "ranks": " || ".join(f"{column.sql}.rank" for column in weighed),
        "own_ranks": " || ".join(column.own_rank for column in weighed),
    }
    return tuple(
        Step(one.substitute(values), worklist) for worklist, some in _STEPS for one in some
    )


class _Column:
    """A column whose values are weighed, in SQL."""

    def __init__(self, name: str, fold: Fold) -> None:
        self.sql = identifier(name)
        known = f"len({self.sql}) > 0" if name in fold.lists else f"{self.sql} IS NOT NULL"
        if name in fold.outcome:  # a query that went well is known to have no error
            known = f"({known} OR status = 'finished')"
        rank = "gateway_rank" if name in fold.gateway else "engine_rank"
        self.own_rank = f"CASE WHEN {known} THEN {rank} ELSE '{_UNKNOWN}' END"

    def winner(self, number: int) -> str:
        """The value of the highest rank among the reports, with its rank."""
        # A row stored before a column was added has no letter for it.
        kept = f"nullif(substr(known_by, {number}, 1), '')"
        rank = f"coalesce({kept}, {self.own_rank})"
        return f"max(struct_pack(rank := {rank}, value := {self.sql})) AS {self.sql}"


def _letter(number: str) -> str:
    return f"chr({ord('a')} + ({number})::INTEGER)"
