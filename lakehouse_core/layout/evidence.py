"""Who reads a table, and with which conditions: from the gold tables and the texts of the window.

How often each template ran on each engine comes from the pipeline's hourly sums; its literals from
a sample of its texts: the most frequent as often as they are, of the others some stand for all. A
condition on the present day or moment is taken as of the last run of its text.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from lakehouse_core.domain.table import split_name
from lakehouse_core.layout.usable import Columns, fault_of, usable_part
from lakehouse_core.layout.workload import (
    Pattern,
    Reader,
    Scan,
    Unusable,
    Workload,
)
from lakehouse_core.sql.inspector import default_inspector
from lakehouse_core.sql.scanning import tests_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from lakehouse_core.sql.inspector import Inspector
    from lakehouse_core.store.port import TelemetryStore

MOST_TEMPLATES = 2_000  # the costliest
MOST_TEXTS, FEWEST_TEXTS, ALL_TEXTS = 24, 2, 2_000  # of a template, and of all together
_LONGEST_TEXT = 100_000

# As the proposals' readers (recommend/reading.py): whole hours from gold, later ones from events.
READERS_SQL = """
WITH used AS (
  SELECT DISTINCT template_id FROM (
    SELECT template_id FROM template_table WHERE table_name = $table::VARCHAR
    UNION ALL SELECT template_id FROM column_usage WHERE table_name = $table::VARCHAR)
), gold AS (
  SELECT coalesce(max(date_trunc('hour', event_at)), 'epoch'::TIMESTAMPTZ) AS until
  FROM watermark WHERE source = 'pipeline'
), ran AS (
  SELECT template_id, engine_id, runs, bytes_scanned, execution_ms, cpu_ms, hour_at AS ran_at
  FROM template_hour, gold
  WHERE hour_at >= $start::TIMESTAMPTZ AND hour_at < gold.until AND hour_at < $end::TIMESTAMPTZ
    AND runs > 0 AND template_id IN (SELECT template_id FROM used)
  UNION ALL
  SELECT template_id, engine_id, 1, bytes_scanned, execution_ms, cpu_ms, submitted_at AS ran_at
  FROM query_event, gold
  WHERE submitted_at >= greatest($start::TIMESTAMPTZ, gold.until)
    AND submitted_at < $end::TIMESTAMPTZ AND template_id IN (SELECT template_id FROM used)
)
SELECT ran.template_id, engine_id, any_value(q.template) AS template, sum(runs)::BIGINT AS runs,
  sum(bytes_scanned)::BIGINT AS bytes_scanned, sum(execution_ms) AS execution_ms,
  sum(cpu_ms) AS cpu_ms, min(ran_at) AS first_at
FROM ran JOIN query_template q USING (template_id)
WHERE q.statement_kind IN ('select', 'merge', 'update', 'delete')
GROUP BY ran.template_id, engine_id
ORDER BY coalesce(sum(ran.bytes_scanned), 0) DESC, sum(ran.runs) DESC, ran.template_id, engine_id
LIMIT $limit::BIGINT
"""
TEXTS_SQL = """
WITH texts AS (
  SELECT template_id, sql_text, dialect, default_catalog, default_namespace, count(*) AS runs,
    max(submitted_at) AS ran_at
  FROM query_event
  WHERE submitted_at >= $start::TIMESTAMPTZ AND submitted_at < $end::TIMESTAMPTZ
    AND list_contains($templates::VARCHAR[], template_id)
    AND sql_text IS NOT NULL AND dialect IS NOT NULL AND length(sql_text) <= $longest::BIGINT
  GROUP BY ALL
), ranked AS (
  SELECT *, row_number() OVER (
    PARTITION BY template_id ORDER BY runs DESC, hash(sql_text)) AS place
  FROM texts
)
SELECT template_id, sql_text, dialect, default_catalog, default_namespace, runs, ran_at,
  place <= $frequent::BIGINT AS is_frequent,
  (sum(runs) FILTER (place > $frequent::BIGINT) OVER (PARTITION BY template_id))::BIGINT
    AS other_runs
FROM ranked
QUALIFY place <= $frequent::BIGINT OR row_number() OVER (
  PARTITION BY template_id, place > $frequent::BIGINT ORDER BY hash(sql_text)
) <= $others::BIGINT
ORDER BY template_id, place
"""


def read_workload(
    store: TelemetryStore,
    table_id: str,
    columns: Columns,
    start: datetime,
    end: datetime,
    *,
    limit: int = MOST_TEMPLATES,
) -> Workload:
    """Who reads the table within the window, and how.

    Args:
        store: the store.
        table_id: the table.
        columns: its columns as they are now.
        start: of the window.
        end: of the window.
        limit: templates on engines, the costliest.
    """
    rows = store.read(READERS_SQL, table=table_id, start=start, end=end, limit=limit).to_pylist()
    readers: dict[str, list[Reader]] = defaultdict(list)
    for row in rows:
        kept = ("engine_id", "template_id", "runs", "bytes_scanned", "execution_ms", "cpu_ms")
        readers[row["template_id"]].append(Reader(**{name: row[name] for name in kept}))
    names = {row["template_id"]: row["template"] for row in rows}
    frequent, others = texts_per_template(len(readers))
    texts = (
        store.read(
            TEXTS_SQL,
            start=start,
            end=end,
            templates=list(readers),
            longest=_LONGEST_TEXT,
            frequent=frequent,
            others=others,
        ).to_pylist()
        if readers
        else []
    )
    found = understand(
        table_id, columns, texts, {t: sum(r.runs for r in rs) for t, rs in readers.items()}
    )
    first = min((row["first_at"] for row in rows), default=None)
    days = max((end - first).total_seconds() / 86_400, 1.0) if first else 1.0
    patterns = tuple(
        Pattern(
            template_id=template,
            template=names[template] or "",
            readers=tuple(readers[template]),
            scans=found.scans[template],
        )
        for template in readers
        if template in found.scans
    )
    unread = sum(r.runs for t, rs in readers.items() if t not in found.scans for r in rs)
    return Workload(
        table_id=table_id,
        patterns=patterns,
        unusable=tuple(found.unusable),
        observed_days=days,
        unread_runs=unread,
    )


def texts_per_template(templates: int) -> tuple[int, int]:
    """How many texts of each template are looked at: the most frequent ones, and others by lot."""
    each = min(MOST_TEXTS, max(FEWEST_TEXTS, ALL_TEXTS // max(1, templates)))
    frequent = max(1, each // 3)
    return frequent, each - frequent


class Understood:
    """What the texts of templates say about one table."""

    def __init__(self) -> None:
        self.scans: dict[str, tuple[Scan, ...]] = {}
        self.unusable: list[Unusable] = []


def understand(
    table_id: str,
    columns: Columns,
    texts: Iterable[Mapping[str, Any]],
    runs: Mapping[str, int],
    inspector: Inspector | None = None,
) -> Understood:
    """Scans of the table and conditions that cannot be used, by template.

    Args:
        table_id: the table.
        columns: its columns.
        texts: rows of `TEXTS_SQL`.
        runs: of each template, on all engines.
        inspector: reads SQL; the process's own by default.
    """
    reads = inspector or default_inspector()
    found = Understood()
    per_template: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for text in texts:
        per_template[text["template_id"]].append(text)
    for template, own in per_template.items():
        weights = _weights(own)
        scans: dict[Any, float] = defaultdict(float)
        for text, weight in zip(own, weights, strict=True):
            for scan in _scans(reads, table_id, columns, text) or ():
                scans[scan] += weight
        if scans:
            found.scans[template] = tuple(Scan(one, weight) for one, weight in scans.items())
            reached: set[tuple[str, str]] = {
                (test.column, test.operator) for one in scans for test in tests_of(one)
            }
            found.unusable += _unusable(reads, table_id, columns, own[0], reached, runs[template])
    return found


def _weights(texts: list[Mapping[str, Any]]) -> list[float]:
    """The share of the template's runs that each text stands for."""
    frequent = [text["runs"] for text in texts if text["is_frequent"]]
    others = len(texts) - len(frequent)
    total = sum(frequent) + (texts[0]["other_runs"] or 0)
    rest = (texts[0]["other_runs"] or 0) / others if others else 0.0
    return [(text["runs"] if text["is_frequent"] else rest) / max(total, 1) for text in texts]


def _given(text: Mapping[str, Any]) -> dict[str, Any]:
    namespace = text["default_namespace"]
    return {
        "default_catalog": text["default_catalog"],
        "default_namespace": split_name(namespace) if namespace else (),
    }


def _scans(
    reads: Inspector, table_id: str, columns: Columns, text: Mapping[str, Any]
) -> list[Any] | None:
    schema = {table_id: [*columns.types, *columns.faults]}
    found = reads.scans(
        text["sql_text"],
        text["dialect"],
        schema=schema,
        at=text.get("ran_at"),
        truncations=True,
        **_given(text),
    )
    if found is None:
        return None
    return [usable_part(one.condition, columns) for one in found if one.table == table_id]


def _unusable(
    reads: Inspector,
    table_id: str,
    columns: Columns,
    text: Mapping[str, Any],
    reached: set[tuple[str, str]],
    runs: int,
) -> Iterable[Unusable]:
    schema = {table_id: [*columns.types, *columns.faults]}
    # A column that the table no longer has is only found where nobody says which ones there are.
    predicates = [
        predicate
        for known in (schema, None)
        for predicate in reads.inspect(
            text["sql_text"], text["dialect"], schema=known, literals=True, **_given(text)
        ).predicates
        or ()
    ]
    told: dict[tuple[str, str, str], Unusable] = {}
    for predicate in predicates:
        if predicate.table != table_id:
            continue
        reason = fault_of(predicate, columns, reached)
        if reason is not None:
            told[predicate.column, predicate.operator, reason] = Unusable(
                template_id=text["template_id"],
                column=predicate.column,
                operator=predicate.operator,
                reason=reason,
                runs=runs,
            )
    return told.values()
