"""Which conditions of a text can spare files of a table, and why the others cannot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse_core.catalog.estimate_literal import range_of
from lakehouse_core.layout.space import ORDERED_TYPES, base_type, metrics_mode
from lakehouse_core.sql.condition import ALWAYS, ColumnTest, Either, Every, constant_of
from lakehouse_core.sql.literal import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from lakehouse_core.catalog.metadata import TableMetadata
    from lakehouse_core.sql.condition import Condition
    from lakehouse_core.sql.records import Predicate

# Iceberg holds no longer list against bounds.
MOST_LISTED = 200
# A column cut off to a day or a month is tested as a range (sql/truncation.py).
TRUNCATIONS = frozenset({"CAST AS DATE", "DATE_TRUNC"})


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a table that bounds are kept of, and what is wrong with the others.

    Attributes:
        types: Iceberg's type by name, in lower case.
        names: how the table spells them.
        truncations: how much of a text bounds keep.
        faults: why a column cannot be used.
    """

    types: Mapping[str, str]
    names: Mapping[str, str]
    truncations: Mapping[str, int | None]
    faults: Mapping[str, str]

    @classmethod
    def of(cls, metadata: TableMetadata) -> Columns:
        """Read them off a table's metadata."""
        types: dict[str, str] = {}
        names: dict[str, str] = {}
        cuts: dict[str, int | None] = {}
        faults: dict[str, str] = {}
        properties = dict(metadata.properties)
        tops = [one for one in metadata.fields if one.is_column]
        for position, one in enumerate(tops):
            name = one.name.lower()
            has_bounds, cut = metrics_mode(properties, one.name, position)
            if one.type.startswith(("struct", "list", "map")):
                faults[name] = f"{one.name} is nested ({one.type.partition('<')[0]})"
            elif base_type(one.type) not in ORDERED_TYPES:
                faults[name] = f"{one.name} is of type {one.type}, which has no order"
            elif not has_bounds:
                faults[name] = f"files keep no bounds of {one.name} (write.metadata.metrics)"
            else:
                types[name], names[name], cuts[name] = one.type, one.name, cut
        for one in metadata.fields:
            if not one.is_column:
                faults.setdefault(one.name.lower(), f"{one.name} is a field inside a column")
        return cls(types, names, cuts, faults)

    def fault(self, column: str) -> str | None:
        """Why a column cannot be used; None when it can."""
        name = column.lower()
        if name in self.types:
            return None
        return self.faults.get(name, f"the table has no column {column}: dropped or renamed since")


def fault_of(
    predicate: Predicate, columns: Columns, reached: Collection[tuple[str, str]]
) -> str | None:
    """Why a predicate of a text spares no file; None when it does.

    Args:
        predicate: as the text has it.
        columns: of the table.
        reached: columns and operators that the conditions of the text's scans test.
    """
    values, operator = predicate.values, predicate.operator
    is_range = any((predicate.column, limit) in reached for limit in (">=", "<"))
    if predicate.function in TRUNCATIONS and is_range and not predicate.is_negated:
        return columns.fault(predicate.column)
    faults: tuple[tuple[bool, str], ...] = (
        (predicate.function is not None, f"{predicate.column} is wrapped in {predicate.function}"),
        (
            # What was known when it ran (CURRENT_DATE) is tested.
            operator != "is_null"
            and any(one.kind == "unknown" for one in values)
            and (predicate.column, operator) not in reached,
            "compared with something that is only known when the query runs",
        ),
        (
            operator == "in" and predicate.count > MOST_LISTED,
            f"a list of {predicate.count:,} values; Iceberg tests at most {MOST_LISTED}",
        ),
        (
            predicate.is_negated and operator not in ("is_null", "between"),
            "negated: nearly every file has such rows",
        ),
        (operator == "other" or _is_open_like(predicate), f"bounds cannot decide {operator}"),
        (
            _is_misfit(predicate, columns),
            f"compared with a value that is no {columns.types.get(predicate.column.lower())}",
        ),
        (
            all(predicate.column != column for column, _ in reached),
            "rows that do not fulfil it may matter all the same (OR, outer join, aggregate)",
        ),
    )
    return columns.fault(predicate.column) or next((why for is_so, why in faults if is_so), None)


def _is_misfit(predicate: Predicate, columns: Columns) -> bool:
    """Whether a value cannot be compared with the column, as bounds are."""
    kind = columns.types.get(predicate.column.lower())
    if kind is None or predicate.operator in ("is_null", "like"):
        return False
    known = [constant_of(one) for one in predicate.values]
    known = [one for one in known if one is not None and one is not UNKNOWN]
    return any(range_of(one, kind) is None for one in known)


def _is_open_like(predicate: Predicate) -> bool:
    text = predicate.values[0].text if predicate.values else None
    return predicate.operator == "like" and (not text or text[0] in "%_\\")


def usable_part(condition: Condition, columns: Columns) -> Condition:
    """The condition without tests that bounds cannot decide; an OR with such a part is nothing."""
    if isinstance(condition, ColumnTest):
        return _usable_test(condition, columns)
    parts = [usable_part(part, columns) for part in condition.parts]
    if isinstance(condition, Either):
        return ALWAYS if ALWAYS in parts or not parts else Either(tuple(parts))
    kept = tuple(part for part in parts if part != ALWAYS)
    return kept[0] if len(kept) == 1 else Every(kept)


def _usable_test(test: ColumnTest, columns: Columns) -> Condition:
    kind = columns.types.get(test.column.lower())
    if kind is None:
        return ALWAYS
    named = ColumnTest(test.column.lower(), test.operator, test.values, test.is_negated)
    if test.operator == "is_null" or test.values == (None,):
        return named
    if test.is_negated and test.operator != "between":
        return ALWAYS
    if len(test.values) > MOST_LISTED or any(one is UNKNOWN for one in test.values):
        return ALWAYS
    if test.operator == "like":
        pattern = test.values[0]
        is_headed = isinstance(pattern, str) and pattern[:1] not in ("", "%", "_", "\\")
        return named if is_headed and kind == "string" else ALWAYS
    known = [one for one in test.values if one is not None]
    return named if all(range_of(one, kind) is not None for one in known) else ALWAYS
