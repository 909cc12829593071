"""What hurts a table and no proposal cures: said with its reason, for silence looks like health."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakehouse_core.domain.maintenance import NEXT, Kind, State
from lakehouse_core.views.formatting import moment, span
from lakehouse_core.views.health import list_health

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakehouse_core.config.models import MaintenanceConfig
    from lakehouse_core.store.port import TelemetryStore

LAST_SQL = """
SELECT table_id, kind, state, decided_by, decision_reason, explanation, ended_at FROM action
QUALIFY row_number() OVER (
  PARTITION BY dedupe_key ORDER BY proposed_at DESC, action_id
) = 1
ORDER BY proposed_at DESC, action_id
"""
_FILES = (Kind.COMPACT,)
CURES: dict[str, tuple[Kind, ...]] = {
    "small_file_share": _FILES,
    "data_files": _FILES,
    "delete_ratio": (Kind.COMPACT, Kind.REWRITE_POSITION_DELETES),
    "manifests": (Kind.REWRITE_MANIFESTS,),
    "snapshots": (Kind.EXPIRE_SNAPSHOTS,),
    "oldest_snapshot_days": (Kind.EXPIRE_SNAPSHOTS,),
    "skew": (),
}
WHY = {
    "skew": "No action cures it: a row lies in the partition its values name. A finer partition "
    "transform, or a bucket beside it, spreads the rows; that changes the table's design, which is "
    "its owner's decision.",
    "small_file_share": "Nothing would be gained now: its partitions have as few files as they "
    "can, or were written just now.",
    "data_files": "Nothing would be gained now: its files are large already.",
    "delete_ratio": "Nothing would be gained now.",
    "manifests": "Nothing would be gained now: its manifests are full.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unhealed:
    """One signal of one table for which nothing is proposed."""

    table_id: str
    rule: str
    state: str
    message: str
    why: str


def list_unhealed(store: TelemetryStore, settings: MaintenanceConfig) -> tuple[Unhealed, ...]:
    """Signals past their limit that no open action is about, worst table first."""
    last = defaultdict(list)  # of one kind there are several: of the whole table, of a partition
    for row in store.read(LAST_SQL).to_pylist():
        last[row["table_id"], row["kind"]].append(row)
    found = []
    for verdict in list_health(store):
        for signal in verdict.contributors:
            kinds = CURES.get(signal.rule, ())
            before = [row for kind in kinds for row in last.get((verdict.table_id, kind), ())]
            if any(NEXT[State(row["state"])] for row in before):
                continue
            found.append(
                Unhealed(
                    table_id=verdict.table_id,
                    rule=signal.rule,
                    state=signal.state.value,
                    message=signal.message,
                    why=_why(signal.rule, before, settings),
                )
            )
    return tuple(found)


def _why(rule: str, before: Iterable[dict[str, Any]], settings: MaintenanceConfig) -> str:
    for row in before:
        if row["state"] == State.REJECTED:
            return f"Rejected by {row['decided_by']}: {row['decision_reason']}"
        if row["state"] in {State.FAILED, State.REFUSED}:
            return f"The last try was {row['state']}: {row['explanation'] or 'no reason is known'}"
        if row["state"] == State.VERIFIED:
            return (
                f"It was done {moment(row['ended_at'])}, as far as was possible then; it is "
                "proposed again when a good part of what that brought is lost."
            )
    if rule in {"snapshots", "oldest_snapshot_days"}:
        return (
            f"Nothing may expire now: snapshots of the last {span(settings.keep_snapshots)} and "
            f"the newest {settings.min_snapshots} are kept."
        )
    return WHY.get(rule, "No action cures it.")
