"""The job as it is started: a plan file in, a report out; here and on a Spark Connect server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.domain.maintenance import Kind
from lakehouse_core.pipeline.job import job_conf
from lakehouse_core.runtime.jobs import read_progress
from lakehouse_core.runtime.spark import spark_environment
from tests.integration.maintenance.job.lakes import FEW, Lake, stage

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.config import Config
    from lakehouse_core.runtime.java import Java
    from spark_jobs.maintenance.plan import ActionRequest

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def document(request: ActionRequest) -> dict[str, Any]:
    return {
        "action_id": request.action_id,
        "operation_id": request.operation_id,
        "lease_token": request.lease_token,
        "plan": asdict(request.plan) | {"kind": request.plan.kind.value},
        "guards": {
            "protected_partitions": list(request.guards.protected_partitions),
            "keep_snapshot_ids": [],
            "older_than": None,
            "min_snapshots": 1,
            "max_attempts": 3,
        },
        "verify": {"partitions": 8, "max_bytes": 1 << 30},
    }


def run_job(folder: Path, java: Java, **plan: Any) -> tuple[int, dict[str, Any], list[str]]:
    given, report = folder / "plan.json", folder / "report.json"
    given.write_text(json.dumps({"run_id": "r1", "catalog": "lake", "stop_file": None, **plan}))
    ended = subprocess.run(
        (sys.executable, "-m", "spark_jobs.maintain", "--plan", given, "--report", report),
        env=os.environ | spark_environment(java),
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )
    lines = [line for line in ended.stdout.splitlines() if read_progress(line)]
    return ended.returncode, json.loads(report.read_text()), lines


def test_actions_run_one_after_another_and_each_has_its_outcome(
    lake: Lake, spark_java: Java, tmp_path: Path
) -> None:
    table, other = lake.events(3), lake.events(1)
    rows = lake.rows(table)
    wanted = [stage("compact_files", options=FEW)]
    gone = lake.request(other, Kind.COMPACT, wanted)
    lake.sql("DROP TABLE {t}", other)
    actions = [document(gone), document(lake.request(table, Kind.COMPACT, wanted))]

    conf = job_conf(lake.config, lake.machine, rows=0)
    code, report, lines = run_job(
        tmp_path, spark_java, master="local[2]", conf=conf, actions=actions
    )

    assert (code, report["outcome"]) == (0, "ok")
    assert [one["outcome"] for one in report["actions"]] == ["refused", "done"]
    assert report["actions"][1]["figures"]["after"]["data_files"] == 1
    assert all(check["ok"] for check in report["actions"][1]["checks"])
    assert lines[0] == "progress 0/7 start Spark"
    assert lake.rows(table) == rows
    assert len(lake.files(table)) == 1


def test_on_a_connect_server_the_procedures_do_it(
    lake: Lake, spark_java: Java, spark_server: Config, tmp_path: Path
) -> None:
    table = lake.events(3, partition="day")
    rows = lake.rows(table)
    guard = ({"day": "2026-11-02"},)
    older = "2100-01-01T00:00:00+00:00"
    requests = [
        lake.request(
            table, Kind.COMPACT, [stage("compact_files", options=FEW)], protected_partitions=guard
        ),
        lake.request(
            table,
            Kind.EXPIRE_SNAPSHOTS,
            [stage("expire_snapshots", older_than=older, retain_last=1)],
        ),
        lake.request(
            table,
            Kind.REMOVE_ORPHANS,
            [stage("remove_orphan_files", older_than="2000-01-01T00:00:00+00:00", dry_run=True)],
        ),
        lake.request(table, Kind.COMPACT, [stage("compact_files")], table_uuid="another"),
    ]
    remote = spark_server.engines["spark"].url

    code, report, _ = run_job(
        tmp_path, spark_java, remote=remote, actions=[document(one) for one in requests]
    )

    assert (code, report["outcome"]) == (0, "ok"), report
    outcomes = [(one["outcome"], one["error"]) for one in report["actions"]]
    assert [one for one, _ in outcomes] == ["done", "done", "refused", "refused"], outcomes
    assert report["actions"][0]["checks"]
    assert report["actions"][0]["figures"]["after"]["data_files"] == 1 + 3
    assert lake.rows(table) == rows
    assert len(lake.snapshots(table)) == 1
    lake.assert_whole(table)
