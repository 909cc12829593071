"""Iceberg's own rewrite actions, with our operation in the summary of what they commit.

`CALL` has no way to add to a snapshot's summary in Iceberg 1.12, the actions behind it have: they
are called with the very arguments of the procedure.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from spark_jobs.maintenance.compact import batches, commit_batch, may_live
from spark_jobs.maintenance.curve import hilbert_order, rewrite_along_curve
from spark_jobs.maintenance.fenced import commit_fenced, written_files
from spark_jobs.maintenance.partitions import condition
from spark_jobs.maintenance.reordered import OpenRewrite
from spark_jobs.maintenance.work import StageResult

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lakehouse_core.domain.maintenance import Stage
    from spark_jobs.maintenance.table import LakeTable, Metadata
    from spark_jobs.maintenance.work import Work

DANGLING = "remove-dangling-deletes"
MANIFEST_BYTES = 8 << 20


def rewrite_data_files(work: Work, stage: Stage) -> StageResult:
    """Put files together, sorted or not; along a Hilbert curve it is ours, Iceberg has none."""
    curve = hilbert_order(work.table, stage.arguments.get("sort_order"))
    if curve is not None:
        return rewrite_along_curve(work, stage, curve)
    return work.retried(partial(_data_files, work, stage.arguments))


def _data_files(work: Work, arguments: Mapping[str, Any]) -> StageResult:
    return _once(work, lambda metadata: _run_data_files(work, arguments, metadata))


def _run_data_files(work: Work, arguments: Mapping[str, Any], metadata: Metadata) -> StageResult:
    options = {key: str(value) for key, value in arguments.get("options", {}).items()}
    # As a part of the action its commit would not carry our operation.
    is_tidied = options.pop(DANGLING, "false").lower() == "true"
    action = _actions(work).rewriteDataFiles(work.table.java).options(options)
    action = _with_strategy(work.table, action, arguments).filter(_files(work, arguments))
    facts = _rewrite_fenced(work, action, options)
    if is_tidied and int(metadata.format_version) > 1:
        work.table.java.refresh()
        tidied = _execute_fenced(work, _actions(work).removeDanglingDeleteFiles)
        facts["removed_delete_files"] = _size(tidied.removedDeleteFiles())
    is_changed = bool(facts["input_files"] or facts["removed_delete_files"])
    return StageResult(is_changed=is_changed, facts=facts)


def _rewrite_fenced(work: Work, action: Any, options: Mapping[str, str]) -> dict[str, Any]:
    """Rewrite data files as an action of Iceberg's says; each commit waits for the lease."""
    snapshot_id = int(work.table.java.currentSnapshot().snapshotId())
    work.stop.check()
    rewrite = OpenRewrite(work.table, action, snapshot_id)
    groups = rewrite.groups()
    facts: dict[str, Any] = {
        "groups": len(groups),
        "input_files": 0,
        "input_bytes": 0,
        "output_files": 0,
        "removed_delete_files": 0,
        "write_seconds": 0.0,
        "commit_seconds": 0.0,
    }
    for batch in batches(groups, options):
        commit_batch(work, snapshot_id, batch, partial(rewrite.write, batch, options), facts)
        for group in batch:
            done = group.java.asResult()
            facts["input_files"] += int(done.rewrittenDataFilesCount())
            facts["input_bytes"] += int(done.rewrittenBytesCount())
            facts["output_files"] += int(done.addedDataFilesCount())
    return facts


def _with_strategy(table: LakeTable, action: Any, arguments: Mapping[str, Any]) -> Any:
    strategy, order = arguments.get("strategy"), arguments.get("sort_order")
    if order is None:
        return action.sort() if strategy == "sort" else action.binPack()
    fields = table.parsed_order(order)
    curve = [one.term() for one in fields if _simple_name(one.term()) == "Zorder"]
    if curve:
        names = [ref.name() for term in curve for ref in term.refs()]
        gateway: Any = table.spark.sparkContext._gateway
        array = gateway.new_array(table.jvm.java.lang.String, len(names))
        for place, name in enumerate(names):
            array[place] = name
        return action.zOrder(array)
    builder = table.iceberg.SortOrder.builderFor(table.java.schema())
    for one in fields:
        builder.sortBy(one.term(), one.direction(), one.nullOrder())
    return action.sort(builder.build())


def rewrite_position_deletes(work: Work, stage: Stage) -> StageResult:
    """Fewer position delete files per partition."""

    def run(_: Metadata) -> StageResult:
        if not _has_deletes_to_merge(work.table):
            return StageResult(
                is_changed=False, facts={"reason": "there are no position delete files to merge"}
            )
        options = {key: str(value) for key, value in stage.arguments.get("options", {}).items()}
        files = _files(work, stage.arguments)
        result = _execute_fenced(
            work,
            lambda table: (
                _actions(work).rewritePositionDeletes(table).options(options).filter(files)
            ),
        )
        rewritten = int(result.rewrittenDeleteFilesCount())
        added = int(result.addedDeleteFilesCount())
        facts = {"input_files": rewritten, "output_files": added}
        return StageResult(is_changed=rewritten > 0, facts=facts)

    return work.retried(lambda: _once(work, run))


def rewrite_manifests(work: Work, stage: Stage) -> StageResult:
    """Fewer manifests, entries ordered by partition."""

    def run(metadata: Metadata) -> StageResult:
        if not _has_manifests_to_merge(work.table, metadata):
            return StageResult(
                is_changed=False, facts={"reason": "the manifests are as few as their size allows"}
            )
        result = _execute_fenced(work, partial(_manifest_action, work, stage.arguments))
        rewritten = _size(result.rewrittenManifests())
        facts = {"input_files": rewritten, "output_files": _size(result.addedManifests())}
        return StageResult(is_changed=rewritten > 0, facts=facts)

    return work.retried(lambda: _once(work, run))


def _manifest_action(work: Work, arguments: Mapping[str, Any], table: Any) -> Any:
    action = _actions(work).rewriteManifests(table)
    caching = arguments.get("use_caching")
    if caching is not None:
        action = action.option("use-caching", str(caching).lower())
    if (spec_id := arguments.get("spec_id")) is not None:
        action = action.specId(int(spec_id))
    return action


def set_sort_order(work: Work, stage: Stage) -> StageResult:
    """Ask writers for an order; nothing is rewritten."""
    order = str(stage.arguments["sort_order"])

    def run() -> StageResult:
        before = work.pin()
        # What is not an order does not get into the statement.
        work.table.parsed_order(order)
        work.stop.check()
        work.spark.sql(f"ALTER TABLE {work.table.full_name} WRITE ORDERED BY {order}")
        after = work.pin()
        is_changed = after.sort_order_id != before.sort_order_id
        return StageResult(is_changed=is_changed, facts={"sort_order_id": after.sort_order_id})

    return work.retried(run)


def _once(work: Work, run: Callable[[Metadata], StageResult]) -> StageResult:
    """Run a stage unless an earlier run of this action has committed it, or there are no rows."""
    metadata = work.pin()
    if work.is_stage_done(metadata):
        return StageResult(is_changed=True, facts={"found_done": True})
    if metadata.current_snapshot_id is None:
        return StageResult(is_changed=False, facts={"reason": "the table is empty"})
    return run(metadata)


def _files(work: Work, arguments: Mapping[str, Any]) -> Any:
    return condition(
        work.table,
        where=arguments.get("where"),
        only=arguments.get("partitions"),
        never=work.request.guards.protected_partitions,
    )


def _actions(work: Work) -> Any:
    return work.table.iceberg.spark.actions.SparkActions.get(work.spark._jsparkSession)


def _execute(work: Work, action: Any) -> Any:
    """Run an action of Iceberg's; its commits carry our operation."""
    for name, value in work.properties.items():
        action = action.snapshotProperty(name, value)
    work.stop.check()
    return action.execute()


def _execute_fenced(work: Work, action: Callable[[Any], Any]) -> Any:
    """Run an action of Iceberg's whose commit waits until the lease was asked for once more.

    Args:
        work: the action of ours.
        action: gives Iceberg's for a table, which is that of a transaction.
    """
    transaction = work.table.java.newTransaction()
    result = _execute(work, action(transaction.table()))
    files = written_files(work.table, transaction)

    def discard() -> None:
        for one in files:
            work.table.java.io().deleteFile(one)

    commit_fenced(
        transaction,
        check=work.stop.check,
        may_live=partial(may_live, work),
        discard=discard,
    )
    return result


def _has_deletes_to_merge(table: LakeTable) -> bool:
    # With a delete file per data file, as Spark writes them, there is nothing to merge.
    partition = "partition, " if table.java.spec().isPartitioned() else ""
    counted = table.spark.sql(
        f"SELECT count(*) AS files FROM {table.full_name}.delete_files WHERE content = 1 "  # noqa: S608
        f"GROUP BY spec_id, {partition}referenced_data_file HAVING count(*) > 1 LIMIT 1"
    )
    return bool(counted.collect())


def _has_manifests_to_merge(table: LakeTable, metadata: Metadata) -> bool:
    target = int(metadata.properties.get("commit.manifest.target-size-bytes", MANIFEST_BYTES))
    sums = table.spark.sql(
        "SELECT count(*) AS manifests, sum(length) AS bytes "  # noqa: S608 quoted
        f"FROM {table.full_name}.manifests GROUP BY content, partition_spec_id"
    ).collect()
    return any(row["manifests"] > -(-row["bytes"] // target) for row in sums)


def _simple_name(value: Any) -> str:
    return str(value.getClass().getSimpleName())


def _size(found: Any) -> int:
    iterator, count = found.iterator(), 0
    while iterator.hasNext():
        iterator.next()
        count += 1
    return count
