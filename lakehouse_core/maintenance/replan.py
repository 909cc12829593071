"""The real conditions of a table's readers, planned against its manifests: before an action, after.

Of each template that reads the table the latest literals of every condition that can spare files
are taken. The same ones are planned on both sides, so what differs is the table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakehouse_core.catalog.estimate import pruned
from lakehouse_core.sql.condition import ColumnTest, Every, constant_of
from lakehouse_core.sql.records import LiteralValue

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakehouse_core.catalog.estimate_tables import TableBounds
    from lakehouse_core.domain.maintenance import Action
    from lakehouse_core.store.port import TelemetryStore

# One condition of one template, as it is kept with a run: JSON.
Read = dict[str, Any]
MOST_TEMPLATES = 50

READS_SQL = f"""
SELECT template_id, column_name, operator, literal_kind, literals,
  coalesce(is_negated, false) AS is_negated
FROM column_literal
WHERE table_name = $table::VARCHAR AND part = 'sample' AND is_conjunct AND is_complete
  AND "function" IS NULL
  AND (len($templates::VARCHAR[]) = 0 OR list_contains($templates::VARCHAR[], template_id))
QUALIFY row_number() OVER (
    PARTITION BY template_id, column_name, role, operator, literal_kind
    ORDER BY last_used_on DESC NULLS LAST, revision DESC, bucket
  ) = 1
  AND dense_rank() OVER (ORDER BY template_id) <= {MOST_TEMPLATES}
ORDER BY template_id, column_name, operator, literal_kind
"""  # noqa: S608 a constant of this module


def reads_of(store: TelemetryStore, action: Action) -> list[Read]:
    """The conditions on an action's table: of the templates that are its evidence, or of all."""
    templates = sorted({one.template_id for one in action.evidence})
    found = store.read(READS_SQL, table=action.table_id, templates=templates)
    reads: list[Read] = found.to_pylist()
    return reads


def columns_of(reads: Sequence[Read]) -> list[str]:
    """The columns that conditions are about."""
    return sorted({str(one["column_name"]) for one in reads})


def planned(bounds: TableBounds, reads: Sequence[Read]) -> dict[str, float]:
    """Files and bytes that one run of each template would read; nothing when no reader is known."""
    templates: dict[str, list[ColumnTest]] = {}
    for one in reads:
        templates.setdefault(one["template_id"], []).append(_test(one))
    if not templates:
        return {}
    found = [pruned(bounds.data, Every(tuple(tests))) for tests in templates.values()]
    return {
        "planned_files": float(sum(one.files for one in found)),
        "planned_bytes": float(sum(one.bytes for one in found)),
    }


def _test(read: Mapping[str, Any]) -> ColumnTest:
    kind = read["literal_kind"]
    values = tuple(
        constant_of(LiteralValue(kind="null" if text is None else kind, text=text))
        for text in read["literals"] or ()
    )
    return ColumnTest(read["column_name"], read["operator"], values, bool(read["is_negated"]))
