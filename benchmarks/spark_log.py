"""A Spark event log: MB/s of log text on one core, and the memory it takes.

    python benchmarks/spark_log.py --json [--mib 1024]

The log is a rolling one, zstd as Spark writes it (a frame per flush), made from the recorded log of
a real server: its SELECT of four stages again and again, with other ids and many tasks per stage.
It is read in a process of its own, batch by batch, as the collect agent reads it; the position is
written down with each batch. The rows must be all there, with the sums that went in.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import zstandard

from collectors.spark.config import EventLogSettings
from collectors.spark.source import EventLogSource
from collectors.understanding import Understanding
from lakehouse_core.domain.query import EngineId

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMITS = {"mb_per_second": 50.0, "peak_mib": 500.0}
RECORDED = Path(__file__).parents[1] / "tests" / "integration" / "fixtures" / "spark"
SELECT = "SELECT d, count(*) c FROM lake.demo.t WHERE id > 10 GROUP BY d ORDER BY d"
APP = "local-1"
TASKS_PER_STAGE = 200
BYTES_PER_TASK = 1_000
VARIANTS = 499
FILE_BYTES = 128 * 2**20  # Spark's default of spark.eventLog.rolling.maxFileSize
_FIXED = ("Stage Attempt ID", "Bytes Read")
_FLUSHED = ("JobStart", "JobEnd", "StageCompleted", "Operation", "SQLExecution")
_METRICS = (
    "executorDeserializeTime", "executorDeserializeCpuTime", "executorRunTime", "executorCpuTime",
    "resultSize", "jvmGCTime", "resultSerializationTime", "peakExecutionMemory",
    "input.bytesRead", "input.recordsRead", "shuffle.write.bytesWritten",
    "shuffle.write.recordsWritten", "shuffle.write.writeTime",
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    parser.add_argument("--mib", type=int, default=1_024, help="size of the log, uncompressed")
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.read is not None:
        print(json.dumps(read_log(arguments.read)))
        return 0
    with tempfile.TemporaryDirectory(prefix="spark-log-") as folder:
        written = write_log(Path(folder), arguments.mib * 2**20)
        command = [sys.executable, __file__, "--read", folder]
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
        found = subprocess.run(command, capture_output=True, check=True, env=environment)
    read = json.loads(found.stdout)
    assert read["queries"] == written["queries"], (read, written)
    assert read["bytes_scanned"] == written["bytes_scanned"], (read, written)
    assert read["letters"] == 0, read
    figures = {
        "log_mib": round(written["bytes"] / 2**20),
        "compressed_mib": round(written["compressed"] / 2**20),
        "queries": read["queries"],
        "tasks": written["tasks"],
        "mb_per_second": round(written["bytes"] / 1e6 / read["cpu_seconds"], 1),
        "mb_per_second_elapsed": round(written["bytes"] / 1e6 / read["seconds"], 1),
        "peak_mib": round(read["peak_mib"]),
        "batches": read["batches"],
    }
    is_good = (
        figures["mb_per_second"] >= LIMITS["mb_per_second"]
        and figures["peak_mib"] < LIMITS["peak_mib"]
    )
    print(json.dumps({"figures": figures, "limits": LIMITS, "ok": is_good}, indent=2))
    return 0 if is_good else 1


def read_log(folder: Path) -> dict[str, Any]:
    """Read the whole log as the agent does; CPU time, so that neighbours do not count."""
    source = EventLogSource(
        EventLogSettings(engine_id=EngineId("spark"), folder=folder), Understanding()
    )
    start, cpu = time.perf_counter(), time.process_time()
    final: dict[str, int] = {}
    letters = batches = 0
    for batch in source.pull(None):
        batches += 1
        letters += len(batch.dead_letters)
        events = batch.rows.get("query_event")
        if events is not None:
            columns = (
                events.column(n).to_pylist() for n in ("query_id", "status", "bytes_scanned")
            )
            final |= {key: scanned for key, status, scanned in zip(*columns, strict=True)
                      if status == "finished"}  # fmt: skip
    return {
        "queries": len(final),
        "bytes_scanned": sum(final.values()),
        "letters": letters,
        "batches": batches,
        "cpu_seconds": time.process_time() - cpu,
        "seconds": time.perf_counter() - start,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def write_log(folder: Path, size: int) -> dict[str, int]:
    """Write at least so many bytes of log text; what is in it."""
    log = folder / f"eventlog_v2_{APP}"
    log.mkdir()
    (log / f"appstatus_{APP}").touch()
    recorded = _recorded()
    totals = {"bytes": 0, "compressed": 0, "queries": 0, "tasks": 0, "bytes_scanned": 0}
    compressor = zstandard.ZstdCompressor(level=1)
    index, left = 0, 0
    file = None
    while totals["bytes"] < size:
        for flush in _query(recorded, totals["queries"]):
            if file is None or left <= 0:
                if file is not None:
                    file.close()
                index, left = index + 1, FILE_BYTES
                file = (log / f"events_{index}_{APP}.zstd").open("wb")
            frame = compressor.compress(flush)
            file.write(frame)
            left -= len(frame)
            totals["bytes"] += len(flush)
            totals["compressed"] += len(frame)
        totals["queries"] += 1
        totals["tasks"] += recorded.stages * TASKS_PER_STAGE
        totals["bytes_scanned"] += recorded.stages * TASKS_PER_STAGE * BYTES_PER_TASK
    if file is not None:
        file.close()
    return totals


class _Recorded:
    """The events of one query, as they were logged, and the stages in them."""

    def __init__(self, events: list[dict[str, Any]]) -> None:
        self.events = events
        self.stages = sum(_name(e) == "SparkListenerStageSubmitted" for e in events)
        start = next(e for e in events if _name(e) == "SparkListenerTaskStart")
        end = next(e for e in events if _name(e) == "SparkListenerTaskEnd")
        end["Task Metrics"]["Input Metrics"]["Bytes Read"] = BYTES_PER_TASK
        end["Task Info"]["Accumulables"] = [
            {
                "ID": 1_000 + n,
                "Name": f"internal.metrics.{metric}",
                "Update": 17 * n,
                "Value": 4_711 * n,
                "Internal": True,
                "Count Failed Values": True,
            }
            for n, metric in enumerate(_METRICS)
        ]
        self.tasks = (_templates(start), _templates(end))


def _recorded() -> _Recorded:
    (file,) = RECORDED.glob("*/events_1_*.zstd")
    stream = zstandard.ZstdDecompressor().decompressobj(read_across_frames=True)
    events = [json.loads(line) for line in stream.decompress(file.read_bytes()).splitlines()]
    operation = next(
        e["operationId"]
        for e in events
        if _name(e).endswith("OperationStarted")
        and SELECT in e["statementText"]
        and e["statementText"].startswith("common")
    )
    places = [n for n, e in enumerate(events) if e.get("operationId") == operation]
    return _Recorded(events[places[0] : places[-1] + 1])


def _name(event: dict[str, Any]) -> str:
    return str(event["Event"].rpartition(".")[2])


def _query(recorded: _Recorded, number: int) -> Iterator[bytes]:
    """The text of each flush of one query; every id is moved by the query's number."""
    pending: list[bytes] = []
    for event in recorded.events:
        name = _name(event)
        if name in ("SparkListenerTaskStart", "SparkListenerTaskEnd"):
            continue
        moved = _moved(event, number)
        pending.append(json.dumps(moved, separators=(",", ":")).encode())
        if name == "SparkListenerStageSubmitted":
            pending += _tasks(recorded, moved["Stage Info"]["Stage ID"], number)
        if any(part in name for part in _FLUSHED):
            yield b"\n".join(pending) + b"\n"
            pending = []


def _moved(event: dict[str, Any], number: int) -> dict[str, Any]:
    text = json.dumps(event)
    tag = event.get("jobTag") or (event.get("Properties") or {}).get("spark.job.tags") or ""
    operation = event.get("operationId") or tag.rpartition("_Operation_")[2].split(",")[0]
    if operation:
        text = text.replace(operation, f"{operation[:-12]}{number:012}")
    moved: dict[str, Any] = json.loads(text)
    for key in ("executionId", "rootExecutionId"):
        if key in moved:
            moved[key] += number * 100
    properties = moved.get("Properties")
    if properties and "spark.sql.execution.id" in properties:
        properties["spark.sql.execution.id"] = str(
            int(properties["spark.sql.execution.id"]) + number * 100
        )
    if "jobTags" in moved:
        moved["jobTags"] = [
            f"{t[:-12]}{number:012}" if "_Operation_" in t else t for t in moved["jobTags"]
        ]
    if "Stage Info" in moved:
        moved["Stage Info"]["Stage ID"] += number * 100
    return moved


def _tasks(recorded: _Recorded, stage: int, number: int) -> list[bytes]:
    """The tasks of a stage: all start, then all end, as in a stage that is one wave wide."""
    first = number * 10_000
    lines: list[bytes] = []
    for templates in recorded.tasks:
        for n in range(TASKS_PER_STAGE):
            template = templates[(first + stage + n) % len(templates)]
            lines.append(template % {b"stage": stage, b"task": first + n})
    return lines


def _templates(event: dict[str, Any]) -> list[bytes]:
    """Variants of an event, each with figures of its own; the bytes read stay as they are."""
    luck = random.Random(42)  # noqa: S311 a repeatable log
    found = []
    for _ in range(VARIANTS):
        changed = _with_other_figures(event, luck)
        changed["Stage ID"] = "@stage@"
        changed["Task Info"]["Task ID"] = "@task@"
        text = json.dumps(changed, separators=(",", ":")).replace("%", "%%")
        text = text.replace('"@stage@"', "%(stage)d").replace('"@task@"', "%(task)d")
        found.append(text.encode())
    return found


def _with_other_figures(value: Any, luck: random.Random, name: str = "") -> Any:
    if isinstance(value, dict):
        return {k: _with_other_figures(v, luck, k) for k, v in value.items()}
    if isinstance(value, list):
        return [_with_other_figures(v, luck) for v in value]
    if isinstance(value, int) and not isinstance(value, bool) and name not in _FIXED:
        return luck.randrange(1_000_000)
    return value


if __name__ == "__main__":
    sys.exit(main())
