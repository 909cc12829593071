"""Small files put together: with Arrow where that is exact, with Spark everywhere else.

What Spark's own `rewrite_data_files` spends on thousands of small files is not the bytes: each
file opens readers, codecs and row converters of the JVM, and each row is turned twice. Arrow
decodes columns and encodes columns. Planning, metrics and the commit are Iceberg's in both ways.
"""

from __future__ import annotations

import json
import time
import uuid
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from spark_jobs.maintenance.arrow_files import Bin, Layout, Written, local_path
from spark_jobs.maintenance.arrow_schema import UnfitError, to_arrow
from spark_jobs.maintenance.data_file import to_data_files
from spark_jobs.maintenance.groups import Group, plan_groups
from spark_jobs.maintenance.outcome import conflict_of, is_unknown_commit
from spark_jobs.maintenance.partitions import condition
from spark_jobs.maintenance.spark_rewrite import rewrite_group
from spark_jobs.maintenance.work import StageResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from lakehouse_core.domain.maintenance import Stage
    from spark_jobs.maintenance.groups import Rewritten
    from spark_jobs.maintenance.table import LakeTable, Metadata
    from spark_jobs.maintenance.work import Work

# Iceberg's name → Arrow's, and the level that parquet-java uses unless the table says another.
CODECS: dict[str, tuple[str, int | None]] = {
    "zstd": ("zstd", 3),
    "gzip": ("gzip", 6),
    "snappy": ("snappy", None),
    "uncompressed": ("none", None),
    "none": ("none", None),
}
LEVELED = frozenset({"zstd", "gzip"})
MIB = 1 << 20
TASK_BYTES = 1024 * MIB
G = TypeVar("G", bound="Rewritten")


def compact_files(work: Work, stage: Stage) -> StageResult:
    """Rewrite what Iceberg's planner finds too small or too much deleted."""
    return work.retried(partial(_attempt, work, stage.arguments))


def _attempt(work: Work, arguments: Mapping[str, Any]) -> StageResult:
    started = time.monotonic()
    metadata = work.pin()
    if work.is_stage_done(metadata):
        return StageResult(is_changed=True, facts={"found_done": True})
    snapshot_id = metadata.current_snapshot_id
    if snapshot_id is None:
        return StageResult(is_changed=False, facts={"reason": "the table is empty"})
    options = {key: str(value) for key, value in arguments.get("options", {}).items()}
    groups = chosen_groups(work, snapshot_id, arguments, options)
    if not groups:
        return StageResult(is_changed=False, facts={"reason": "no files worth putting together"})
    planned = time.monotonic()
    facts: dict[str, Any] = {
        "groups": len(groups),
        "input_files": sum(len(group.files) for group in groups),
        "input_bytes": sum(group.input_bytes for group in groups),
        "plan_seconds": round(planned - started, 3),
        "write_seconds": 0.0,
        "commit_seconds": 0.0,
    }
    writer = _Writer(work, metadata, facts)
    for batch in batches(groups, options):
        work.stop.check()
        commit_batch(work, snapshot_id, batch, partial(writer.write, batch), facts)
    return StageResult(is_changed=True, facts=facts)


def chosen_groups(
    work: Work, snapshot_id: int, arguments: Mapping[str, Any], options: Mapping[str, str]
) -> list[Group]:
    """The groups that the stage is about and no guard protects."""
    protected = work.request.guards.protected_partitions
    files = condition(
        work.table,
        where=arguments.get("where"),
        only=arguments.get("partitions"),
        never=protected,
    )
    groups = plan_groups(work.table, snapshot_id, options, files)
    if not protected:
        return groups
    # A file of an older spec may hold rows of any partition: nobody can say it is not protected.
    spec_id = work.table.java.spec().specId()
    return [group for group in groups if all(one["spec-id"] == spec_id for one in group.files)]


def batches(groups: list[G], options: Mapping[str, str]) -> Iterator[list[G]]:
    """All groups in one commit, or as many commits as partial progress allows."""
    if options.get("partial-progress.enabled", "false").lower() != "true":
        yield groups
        return
    commits = int(options.get("partial-progress.max-commits", "10"))
    size = -(-len(groups) // max(1, commits))
    for start in range(0, len(groups), size):
        yield groups[start : start + size]


def commit_batch(
    work: Work,
    snapshot_id: int,
    batch: Sequence[Rewritten],
    write: Callable[[], None],
    facts: dict[str, Any],
) -> None:
    """Write groups and commit them; what a failed commit leaves is deleted, unless it may live."""
    started = time.monotonic()
    try:
        write()
        work.stop.check()
    except BaseException:
        _discard(work.table, batch)
        raise
    written = time.monotonic()
    try:
        work.tools.commit(work.table, snapshot_id, batch, work.properties)
    except Exception as error:
        if not may_live(work, error):
            _discard(work.table, batch)
        raise
    facts["write_seconds"] = round(facts["write_seconds"] + written - started, 3)
    facts["commit_seconds"] = round(facts["commit_seconds"] + time.monotonic() - written, 3)


def may_live(work: Work, error: Exception) -> bool:
    """Whether a commit that raised may have happened: then nothing of it is deleted."""
    if is_unknown_commit(error):
        return True
    if conflict_of(error) is not None:
        return False
    try:
        return work.is_stage_done(work.table.refresh())
    except Exception:  # noqa: BLE001 whatever it is, nobody can say what the table holds
        return True


def _discard(table: LakeTable, batch: Iterable[Rewritten]) -> None:
    for group in batch:
        for file in group.java.addedFiles():
            table.java.io().deleteFile(file.location())


class _Writer:
    """Writes groups, each in the way that fits it."""

    def __init__(self, work: Work, metadata: Metadata, facts: dict[str, Any]) -> None:
        self._work = work
        self._metadata = metadata
        self._facts = facts
        self._unfit = why_not_arrow(metadata)
        facts |= {"arrow_groups": 0, "output_files": 0}
        if self._unfit:
            facts["by_spark_because"] = self._unfit

    def write(self, batch: list[Group]) -> None:
        """Give each group its new files."""
        quick = [] if self._unfit else [group for group in batch if self._fits(group)]
        slow = [group for group in batch if group not in quick]
        slow += self._with_arrow(quick)
        for group in slow:
            self._work.stop.check()
            self._facts["output_files"] += rewrite_group(self._work, group)

    def _fits(self, group: Group) -> bool:
        reason = None
        if group.has_deletes:
            reason = "files with deleted rows"
        elif any(one["file-format"] != "parquet" for one in group.files):
            reason = "files that are not Parquet"
        elif any(one["spec-id"] != self._metadata.spec["spec-id"] for one in group.files):
            reason = "files of an older partition spec"
        elif any(local_path(one["file-path"]) is None for one in group.files):
            reason = "files on a store that only Iceberg can read here"
        if reason:
            self._facts["by_spark_because"] = reason
        return reason is None

    def _with_arrow(self, groups: list[Group]) -> list[Group]:
        """Write groups with Arrow; those it cannot write exactly are returned."""
        if not groups:
            return []
        context = self._work.spark.sparkContext
        bins = [one for n, group in enumerate(groups) for one in self._bins(n, group)]
        size = sum(group.input_bytes for group in groups)
        shares = shared_out(bins, context.defaultParallelism * (1 + size // TASK_BYTES))
        threads = max(1, context.defaultParallelism // len(shares))
        most = max(group.most_bytes for group in groups)
        task = partial(_run_bins, self._work.tools.write, layout_of(self._metadata, most, threads))
        context.setJobDescription(f"compact {self._work.table.name}")
        results: list[Written] = context.parallelize(shares, len(shares)).flatMap(task).collect()
        left = []
        for number, group in enumerate(groups):
            own = [one for one in results if one.group == number]
            files = [file for one in own for file in one.files]
            if reason := next((one.unfit for one in own if one.unfit), None):
                self._facts["by_spark_because"] = reason
                for file in files:
                    self._work.table.java.io().deleteFile(file.location)
                left.append(group)
                continue
            partition = group.java.fileScanTasks().get(0).file().partition()
            group.java.setOutputFiles(to_data_files(self._work.table, partition, files))
            self._facts["arrow_groups"] += 1
            self._facts["output_files"] += len(files)
        return left

    def _bins(self, number: int, group: Group) -> Iterator[Bin]:
        table = self._work.table.java
        partition = group.java.fileScanTasks().get(0).file().partition()
        run = uuid.uuid4()
        for count, files in enumerate(_packed(group)):
            name = f"{count:05}-{run}"
            provider = table.locationProvider()
            stem = (
                provider.newDataLocation(table.spec(), partition, name)
                if table.spec().isPartitioned()
                else provider.newDataLocation(name)
            )
            yield Bin(
                group=number,
                sources=tuple(str(local_path(one["file-path"])) for one in files),
                rows=sum(one["record-count"] for one in files),
                stem=stem,
            )


def shared_out(bins: list[Bin], shares: int) -> list[list[Bin]]:
    """Bins dealt out to tasks, the largest first to whoever has least.

    A task in Python costs some tenths of a second before it does anything: there are as many as
    cores, and more only when each would have a lot to do.
    """
    found: list[list[Bin]] = [[] for _ in range(min(shares, len(bins)))]
    rows = [0] * len(found)
    for one in sorted(bins, key=lambda one: -one.rows):
        least = rows.index(min(rows))
        found[least].append(one)
        rows[least] += one.rows
    return found


def _run_bins(
    write: Callable[[Layout, Bin, int], Written], layout: Layout, share: list[Bin]
) -> list[Written]:
    """In a Spark task."""
    from pyspark import TaskContext  # noqa: PLC0415 there is one in a task only

    context = TaskContext.get()
    attempt = 0 if context is None else context.taskAttemptId()
    return [write(layout, one, attempt) for one in share]


def _packed(group: Group) -> Iterator[list[dict[str, Any]]]:
    """The files in their order, as many together as make one new file."""
    together: list[dict[str, Any]] = []
    size = 0
    for one in group.files:
        if together and size + one["file-size-in-bytes"] > group.split_bytes:
            yield together
            together, size = [], 0
        together.append(one)
        size += one["file-size-in-bytes"]
    if together:
        yield together


def why_not_arrow(metadata: Metadata) -> str | None:
    """Why no file of a table can be written with Arrow; None when it can."""
    properties = metadata.properties
    bloom = "write.parquet.bloom-filter-enabled.column."
    reasons = {
        f"format version {metadata.format_version} keeps row ids": metadata.format_version > 2,
        "the table is sorted": metadata.sort_order_id != 0,
        "the table is written in another format": (
            properties.get("write.format.default", "parquet").lower() != "parquet"
        ),
        "its codec": _codec(properties) not in CODECS,
        "bloom filters": any(
            name.startswith(bloom) and value.lower() == "true" for name, value in properties.items()
        ),
        "encryption": "encryption.key-id" in properties,
    }
    found = next((reason for reason, is_so in reasons.items() if is_so), None)
    if found is None:
        try:
            to_arrow(metadata.schema)
        except UnfitError as error:
            return str(error)
    return found


def layout_of(metadata: Metadata, most_bytes: int, threads: int) -> Layout:
    """How the table wants its files."""
    properties = metadata.properties
    name = _codec(properties)
    codec, level = CODECS[name]
    asked = properties.get("write.parquet.compression-level")
    identity = {
        one["source-id"] for one in metadata.spec["fields"] if one["transform"] == "identity"
    }
    return Layout(
        schema=to_arrow(metadata.schema).serialize().to_pybytes(),
        iceberg_schema=json.dumps(metadata.schema, separators=(",", ":")),
        unfillable=frozenset(identity),
        codec=codec,
        codec_level=int(asked) if asked and name in LEVELED else level,
        row_group_bytes=int(properties.get("write.parquet.row-group-size-bytes", 128 * MIB)),
        page_bytes=int(properties.get("write.parquet.page-size-bytes", MIB)),
        dictionary_bytes=int(properties.get("write.parquet.dict-size-bytes", 2 * MIB)),
        most_bytes=most_bytes,
        threads=threads,
    )


def _codec(properties: Mapping[str, str]) -> str:
    return properties.get("write.parquet.compression-codec", "zstd").lower()
