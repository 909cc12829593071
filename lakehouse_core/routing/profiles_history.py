"""Runs from the query history: what fills the profiles when a process starts, and the model's data.

Only reads count, since only reads may be sent elsewhere; a failure that is the statement's own
fault, or the gateway's, says nothing about the engine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lakehouse_core.domain.query import EXCUSED_ERRORS
from lakehouse_core.routing.features import FeatureSpace, ScanFacts
from lakehouse_core.routing.predict_history import History
from lakehouse_core.routing.predict_training import Trained, train
from lakehouse_core.routing.profiles import Run, typical_of, valued_runs, with_reruns
from lakehouse_core.routing.profiles_wear import wear_of
from lakehouse_core.sql.shape import StatementShape

if TYPE_CHECKING:
    from datetime import datetime

    from lakehouse_core.routing.profiles import Valuation
    from lakehouse_core.sql.inspector import Inspector
    from lakehouse_core.store.port import TelemetryStore

_RUNS_SQL = """
WITH chosen AS (
  SELECT template_id, engine_id, submitted_at, collected_at, query_id, gateway_id, bytes_scanned,
    (elapsed_ms - least(greatest(coalesce(queued_ms, 0), 0), elapsed_ms)) / 1000 AS seconds,
    status = 'failed' AS failed, {texts}
  FROM query_event
  WHERE submitted_at >= $since AND collected_at >= $after AND template_id IS NOT NULL
    AND statement_kind = 'select' AND elapsed_ms >= 0 AND (status = 'finished' OR (
      status = 'failed' AND coalesce(error_class, '') NOT IN {excused}
    ))
  QUALIFY row_number() OVER (
    PARTITION BY template_id, engine_id ORDER BY submitted_at DESC
  ) <= $runs
)
SELECT chosen.*, estimated_files, estimated_bytes
FROM chosen LEFT JOIN (
  SELECT gateway_id, estimated_files, estimated_bytes FROM routing_decision
  WHERE submitted_at >= $since AND estimated_bytes IS NOT NULL
) AS routed USING (gateway_id)
ORDER BY submitted_at
"""
_WITH_TEXTS = _RUNS_SQL.format(texts="dialect, sql_text", excused=EXCUSED_ERRORS)
_WITHOUT_TEXTS = _RUNS_SQL.format(texts="NULL AS dialect, NULL AS sql_text", excused=EXCUSED_ERRORS)


@dataclass(frozen=True, slots=True)
class PastRun:
    """A run with the text it had.

    Attributes:
        text: None when it was not asked for, or is not kept.
        collected_at: when the store heard of it.
    """

    run: Run
    dialect: str | None
    text: str | None
    collected_at: datetime


def past_runs(
    store: TelemetryStore,
    since: datetime,
    *,
    runs: int = 64,
    after: datetime | None = None,
    has_texts: bool = True,
) -> list[PastRun]:
    """The newest runs of every template on every engine, oldest first.

    Args:
        store: the history.
        since: when they were submitted, at least.
        runs: so many per template and engine.
        after: only those that the store has heard of since.
        has_texts: whether their texts are wanted.

    Raises:
        StoreError: the store does not answer.
    """
    sql = _WITH_TEXTS if has_texts else _WITHOUT_TEXTS
    rows = store.read(sql, since=since, after=after or since, runs=runs).to_pylist()
    return [
        PastRun(
            Run(
                template_id=row["template_id"],
                engine_id=row["engine_id"],
                at=row["submitted_at"],
                seconds=float(row["seconds"]),
                scan_bytes=_number(row["bytes_scanned"]),
                failed=bool(row["failed"]),
                estimated_bytes=_number(row["estimated_bytes"]),
                wear=wear_of(row["estimated_files"], row["estimated_bytes"]),
                name=row["gateway_id"] or row["query_id"],
            ),
            row["dialect"],
            row["sql_text"],
            row["collected_at"],
        )
        for row in rows
    ]


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


@dataclass(frozen=True, slots=True)
class Lessons:
    """Past runs as training takes them, oldest first; one row of `history` per shape."""

    space: FeatureSpace
    shapes: list[StatementShape]
    history: History


def learn_from(past: list[PastRun], value_of: Valuation, inspector: Inspector) -> Trained | None:
    """The model that past runs teach; None when they hold no comparison."""
    lessons = lessons_of(past, value_of, inspector)
    if lessons is None:
        return None
    return Trained(lessons.history.engines, lessons.space, train(lessons.history))


def lessons_of(past: list[PastRun], value_of: Valuation, inspector: Inspector) -> Lessons | None:
    """Past runs made ready; None when they hold no comparison.

    A statement of the history ran on one engine, so a row has one known cell; what the template
    did elsewhere fills the others.
    """
    engines = tuple(sorted({one.run.engine_id for one in past}))
    if len(engines) < 2:
        return None
    shapes = [_shape(one, inspector) for one in past]
    templates = {shape.template_id: shape.template for shape in shapes}
    number = {template_id: place for place, template_id in enumerate(templates)}
    space = FeatureSpace.learned(templates.values())
    template = np.array([number[shape.template_id] for shape in shapes], np.int64)
    values = _values(past, engines, template, value_of)
    known = [one.run.size_bytes for one in past]
    sizes = np.array([math.nan if size is None else size for size in known])
    scans = [ScanFacts(bytes=size) for size in known]
    history = History(engines, template, space.matrix(shapes, scans), np.log2(1.0 + sizes), values)
    return Lessons(space, shapes, history)


def _values(
    past: list[PastRun], engines: tuple[str, ...], template: Any, value_of: Valuation
) -> Any:
    """Row x engine; a failed run costs itself and the one that must follow, as in profiles."""
    values = np.full((len(past), len(engines)), np.nan)
    column = {name: place for place, name in enumerate(engines)}
    rows: dict[tuple[int, str], list[int]] = {}
    for row, one in enumerate(past):
        rows.setdefault((int(template[row]), one.run.engine_id), []).append(row)
    valued = {
        key: valued_runs([past[row].run for row in some], value_of, key[1])
        for key, some in rows.items()
    }
    typical = {key: typical_of(*found) for key, found in valued.items()}
    for (number, engine), (worth, failed) in valued.items():
        others = [typical.get((number, one), math.nan) for one in engines if one != engine]
        cost = with_reruns(worth, failed, typical[number, engine], others)
        values[rows[number, engine], column[engine]] = cost
    return values


def _shape(one: PastRun, inspector: Inspector) -> StatementShape:
    """The text in numbers; the template as the history has it, which knows the session."""
    if one.text is None:
        return StatementShape(one.run.template_id, None, (0.0,) * 5)
    found = inspector.shape(one.text, one.dialect or "trino")
    return StatementShape(one.run.template_id, found.template, found.literals)
