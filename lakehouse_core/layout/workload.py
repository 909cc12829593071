"""What queries ask of a table: conditions with their literals, how often, on which engine."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lakehouse_core.sql.condition import ColumnTest, Either, Every, constant_of
from lakehouse_core.sql.literal import canonical
from lakehouse_core.sql.records import LiteralValue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakehouse_core.sql.condition import Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """One template on one engine, over the whole window; None where the engine does not say."""

    engine_id: str
    template_id: str
    runs: int
    bytes_scanned: int | None = None
    execution_ms: float | None = None
    cpu_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Scan:
    """One reading of the table by a template.

    Attributes:
        condition: what the rows must fulfil; only tests that bounds can decide.
        weight: in how many of the template's runs, 0 to 1; with several readings in a run the
            weights of a template are more than 1 together.
    """

    condition: Condition
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusable:
    """A condition that cannot spare a file, and why."""

    template_id: str
    column: str
    operator: str
    reason: str
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A template that reads the table."""

    template_id: str
    template: str
    readers: tuple[Reader, ...]
    scans: tuple[Scan, ...]

    @property
    def runs(self) -> int:
        """On all engines."""
        return sum(reader.runs for reader in self.readers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """All that is known of who reads a table.

    Attributes:
        observed_days: how long queries have been seen; at least one day.
        unread_runs: runs of templates whose text nobody has, or nobody understands.
    """

    table_id: str
    patterns: tuple[Pattern, ...]
    unusable: tuple[Unusable, ...] = ()
    observed_days: float = 1.0
    unread_runs: int = 0
    _conditions: dict[Condition, int] = field(default_factory=dict, init=False, repr=False)
    _distinct: tuple[Condition, ...] = field(default=(), init=False, repr=False)

    def __post_init__(self) -> None:
        for pattern in self.patterns:
            for scan in pattern.scans:
                self._conditions.setdefault(scan.condition, len(self._conditions))
        object.__setattr__(self, "_distinct", tuple(self._conditions))

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Every distinct condition."""
        return self._distinct

    def place(self, condition: Condition) -> int:
        """Where a condition stands among them."""
        return self._conditions[condition]

    @property
    def runs(self) -> int:
        """Of all templates."""
        return sum(pattern.runs for pattern in self.patterns)


def columns_tested(condition: Condition) -> Iterator[str]:
    """The columns of a condition, each as often as it is tested."""
    if isinstance(condition, ColumnTest):
        yield condition.column
    else:
        for part in condition.parts:
            yield from columns_tested(part)


def to_json(workload: Workload) -> str:
    """The workload as it is kept with the advice, so that it can be planned again later."""
    document = {
        "table": workload.table_id,
        "days": workload.observed_days,
        "unread_runs": workload.unread_runs,
        "patterns": [
            {
                "template_id": one.template_id,
                "template": one.template,
                "readers": [
                    [r.engine_id, r.runs, r.bytes_scanned, r.execution_ms, r.cpu_ms]
                    for r in one.readers
                ],
                "scans": [[_condition_to_json(s.condition), s.weight] for s in one.scans],
            }
            for one in workload.patterns
        ],
    }
    return json.dumps(document, ensure_ascii=True, separators=(",", ":"))


def from_json(text: str) -> Workload:
    """The reverse of `to_json`; what could not be used is not kept."""
    raw = json.loads(text)
    return Workload(
        table_id=raw["table"],
        observed_days=raw["days"],
        unread_runs=raw["unread_runs"],
        patterns=tuple(
            Pattern(
                template_id=one["template_id"],
                template=one["template"],
                readers=tuple(
                    Reader(
                        engine_id=engine,
                        template_id=one["template_id"],
                        runs=runs,
                        bytes_scanned=size,
                        execution_ms=execution,
                        cpu_ms=cpu,
                    )
                    for engine, runs, size, execution, cpu in one["readers"]
                ),
                scans=tuple(Scan(_condition_from_json(c), w) for c, w in one["scans"]),
            )
            for one in raw["patterns"]
        ),
    )


def _condition_to_json(condition: Condition) -> Any:
    if isinstance(condition, ColumnTest):
        values = [canonical(value) for value in condition.values]
        return [
            condition.column,
            condition.operator,
            [[one.kind, one.text] for one in values],
            condition.is_negated,
        ]
    name = "any" if isinstance(condition, Either) else "all"
    return {name: [_condition_to_json(part) for part in condition.parts]}


def _condition_from_json(raw: Any) -> Condition:
    if isinstance(raw, list):
        column, operator, values, is_negated = raw
        constants = tuple(constant_of(LiteralValue(kind, text)) for kind, text in values)
        return ColumnTest(column, operator, constants, is_negated)
    if "any" in raw:
        return Either(tuple(map(_condition_from_json, raw["any"])))
    return Every(tuple(map(_condition_from_json, raw["all"])))
