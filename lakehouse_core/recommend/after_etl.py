"""A batch job has ended: the small files it left are put together, in its partitions alone.

That is the best moment: the partitions are quiet, their files are still in caches, and nobody has
paid for reading them yet. The rest of the table is left as it is, however it may be.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from lakehouse_core.domain.maintenance import Action, Change, Kind, State
from lakehouse_core.domain.table import LakeTable, TableName
from lakehouse_core.maintenance.activity import committed_at
from lakehouse_core.maintenance.coordinate import BATCH_ENGINES
from lakehouse_core.maintenance.decisions import PROPOSER
from lakehouse_core.maintenance.plan import SMALL_SHARE, build_plan, plan_hash
from lakehouse_core.recommend import model
from lakehouse_core.recommend.cures.compact import RISK

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from lakehouse_core.catalog.contents import WrittenPartition
    from lakehouse_core.config.models import Config
    from lakehouse_core.maintenance.look import Look, Lookout

PROPOSER_AFTER_ETL = f"{PROPOSER}:etl"
# A job that leaves fewer files than these in all is left alone.
LEAST_GAIN = 5
# More partitions than these are no part of a table any more: the usual proposals look at it whole.
MOST_PARTITIONS = 64
# What nobody has approved by then is the business of the usual proposals.
STANDS_FOR = timedelta(hours=6)
WRITES = frozenset({"append", "overwrite", "delete"})


@dataclass(frozen=True, slots=True)
class _Written:
    """Partitions with small files: which, how many files they have and may have."""

    partitions: tuple[Mapping[str, Any], ...]
    files: int
    files_after: int
    size: int


def etl_key(table_id: str) -> str:
    """There is one open action of this sort per table."""
    return f"{Kind.COMPACT.value} after etl {table_id}"


def propose_after_etl(
    lookout: Lookout, table_id: str, since: datetime, config: Config
) -> Action | None:
    """The proposal to compact what batch jobs wrote; None: it would gain little.

    Args:
        lookout: looks at the table.
        table_id: the table.
        since: when its batch jobs were last looked at.
        config: sizes, limits and prices.

    Raises:
        CatalogError: the table cannot be read; says why.
    """
    look = lookout.look(table_id)
    commits = [
        one.snapshot_id
        for one in look.metadata.history
        if committed_at(one) > since
        and one.summary.get("engine-name") in BATCH_ENGINES
        and one.summary.get("operation") in WRITES
    ]
    target = look.metrics.target_file_bytes or config.maintenance.target_file_bytes
    found = _small_files(look, lookout.written(look, commits), target)
    if found is None or found.files - found.files_after < LEAST_GAIN:
        return None
    return _action(look, found, config)


def _small_files(look: Look, written: Sequence[WrittenPartition], target: int) -> _Written | None:
    newest = max((one.spec_id for one in written), default=0)
    wanted = {
        json.dumps(list(one.values.values())): one.values
        for one in written
        if one.spec_id == newest and one.values
    }
    if not wanted or len(wanted) > MOST_PARTITIONS:
        return None
    live = look.live
    small = live.is_data & (live.sizes < target * SMALL_SHARE)
    numbers, first, place = np.unique(live.partition[small], return_index=True, return_inverse=True)
    counts = np.bincount(place, minlength=len(numbers))
    sizes = np.bincount(place, weights=live.sizes[small].astype(np.float64), minlength=len(numbers))
    places = np.flatnonzero(small)
    chosen, files, after, size = [], 0, 0, 0
    for n in range(len(numbers)):
        key = json.loads(live.partition_key[int(places[first[n]])].as_py(), strict=False)
        values = wanted.get(json.dumps(key))
        left = max(int(np.ceil(sizes[n] / target)), 1)
        if values is None or counts[n] <= left:
            continue
        chosen.append(values)
        files, after, size = files + int(counts[n]), after + left, size + int(sizes[n])
    return _Written(tuple(chosen), files, after, size) if chosen else None


def _action(look: Look, found: _Written, config: Config) -> Action:
    metrics, name = look.metrics, TableName.parse(look.metrics.table_id)
    table = LakeTable(
        table_id=metrics.table_id,
        catalog=name.catalog,
        namespace=".".join(name.namespace),
        table_name=name.name,
        seen_at=look.at,
        table_uuid=look.metadata.table_uuid,
    )
    parameters = {
        "partitions": list(found.partitions),
        "input_files": found.files,
        "input_bytes": found.size,
    }
    plan = build_plan(Kind.COMPACT, table, metrics, config, parameters=parameters)
    left = metrics.data_files - found.files + found.files_after
    predicted = (Change(name="data_files", unit="files", before=metrics.data_files, after=left),)
    cost = model.cost_usd(plan.input_bytes, config.prices)
    count = len(found.partitions)
    return Action(
        action_id=f"a{secrets.token_hex(6)}",
        dedupe_key=etl_key(metrics.table_id),
        revision=0,
        kind=Kind.COMPACT,
        table_id=metrics.table_id,
        state=State.PROPOSED,
        title=f"Put {found.files:,} small files of {count:,} partitions just written together",
        reason=f"a batch job has ended and left {found.files:,} small files where "
        f"{found.files_after:,} would do",
        evidence=(),
        evidence_at=look.at,
        predicted=predicted,
        risk=RISK,
        plan=plan,
        plan_hash=plan_hash(plan, predicted),
        gain_usd_month=None,
        cost_usd=cost,
        priority=model.priority(None, cost, 0.0, plan.input_bytes),
        proposed_by=PROPOSER_AFTER_ETL,
        proposed_at=look.at,
        updated_at=look.at,
        expires_at=look.at + STANDS_FOR,
    )
