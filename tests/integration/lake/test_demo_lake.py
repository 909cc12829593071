"""The demo lake: same seed, same rows; a killed build leaves nothing behind; promised shapes."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.catalog import open_catalog
from lakehouse_core.catalog.location import local_path
from lakehouse_core.runtime.demo_lake import build_demo_lake, demo_lake_command, marker_path
from lakehouse_core.runtime.report import SilentReporter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyiceberg.table import Table

    from lakehouse_core.config import Config
    from lakehouse_core.config.environment import Machine
    from lakehouse_core.runtime.command import Command
    from lakehouse_core.runtime.java import Java
    from tests.conftest import DemoConfig

# Two builds, on cores that other tests may be using.
pytestmark = [pytest.mark.lake, pytest.mark.spark, pytest.mark.timeout(900)]

PARTS_BEFORE_THE_KILL = 4
KILL_SECONDS = 300.0


@pytest.fixture(scope="module")
def rebuilt(
    demo_lake: Config, load_demo_config: DemoConfig, machine: Machine, spark_java: Java
) -> Config:
    """A lake whose first build was killed half way and whose tables were damaged after that."""
    config = load_demo_config(
        None,
        LAKEHELM__DEMO__SCALE=demo_lake.demo.scale,
        LAKEHELM__ENGINES__SPARK__DRIVER_MEMORY="1GiB",
        LAKEHELM__ENGINES__SPARK__MASTER="local[2]",
    )
    command = demo_lake_command(config, machine, spark_java)
    _kill_half_way(command, machine)
    assert not marker_path(config).exists()
    _damage(config)
    log = config.home / "logs" / "demo-lake.log"
    build_demo_lake(command, machine.variables, log, SilentReporter())
    return config


@pytest.fixture
def tables(rebuilt: Config) -> Iterator[dict[str, Table]]:
    with closing(open_catalog("lake", rebuilt.catalogs["lake"]).iceberg()) as catalog:
        names = [name for space in catalog.list_namespaces() for name in catalog.list_tables(space)]
        yield {".".join(name): catalog.load_table(name) for name in names}


def _kill_half_way(command: Command, machine: Machine) -> None:
    environ = {**machine.variables, **command.env}
    with subprocess.Popen(
        command.argv, env=environ, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as job:
        try:
            deadline = time.monotonic() + KILL_SECONDS
            assert job.stdout is not None
            for line in job.stdout:
                assert time.monotonic() < deadline, "the build did not get far enough"
                if line.startswith(f"progress {PARTS_BEFORE_THE_KILL}/"):
                    break
        finally:
            os.killpg(job.pid, signal.SIGKILL)


def _damage(config: Config) -> None:
    """Break the metadata of a table that the killed build had created."""
    found = open_catalog("lake", config.catalogs["lake"]).tables()
    assert found, "the killed build had created no table"
    broken = local_path(next(iter(found.values())))
    broken.write_text("{")


def marker(config: Config) -> dict[str, Any]:
    return json.loads(marker_path(config).read_text())


def test_the_same_seed_gives_the_same_rows_in_every_table(
    demo_lake: Config, rebuilt: Config
) -> None:
    assert marker(rebuilt)["tables"] == marker(demo_lake)["tables"]
    assert len(marker(rebuilt)["tables"]) == 13
    assert all(table["rows"] > 0 for table in marker(rebuilt)["tables"].values())


def test_a_killed_build_leaves_no_stray_file(rebuilt: Config, tables: dict[str, Table]) -> None:
    known = {local_path(path) for table in tables.values() for path in reachable(table)}
    present = {file for file in rebuilt.catalogs["lake"].warehouse.rglob("*") if file.is_file()}

    assert present == known


def test_the_lake_that_is_there_is_not_built_again(
    rebuilt: Config, machine: Machine, spark_java: Java, tables: dict[str, Table]
) -> None:
    before = {name: table.metadata_location for name, table in tables.items()}
    command = demo_lake_command(rebuilt, machine, spark_java)
    without_java = {**machine.variables, **command.env, "JAVA_HOME": "/nowhere", "PATH": ""}

    again = subprocess.run(
        command.argv, env=without_java, capture_output=True, text=True, check=False
    )

    assert again.returncode == 0, again.stderr
    assert "is built" in again.stdout
    assert {name: t.refresh().metadata_location for name, t in tables.items()} == before


def test_the_marker_tells_how_many_rows_there_are(
    rebuilt: Config, tables: dict[str, Table]
) -> None:
    counted = {f"lake.{name}": live_rows(table) for name, table in tables.items()}

    assert counted == {name: t["rows"] for name, t in marker(rebuilt)["tables"].items()}


def test_events_are_two_weeks_of_hourly_appends(tables: dict[str, Table]) -> None:
    events = tables["demo.events"]
    files = files_of(events, content=0)
    days = {file["partition"]["event_at_day"] for file in files}

    assert (len(files), len(days), len(events.metadata.snapshots)) == (336, 14, 336)
    assert {s.summary.operation.value for s in events.metadata.snapshots} == {"append"}
    assert max(file["file_size_in_bytes"] for file in files) < 32 * 2**20


def test_orders_are_full_of_position_deletes(tables: dict[str, Table]) -> None:
    orders = tables["demo.orders_cdc"]
    deleted = sum(file["record_count"] for file in files_of(orders, content=1))
    written = sum(file["record_count"] for file in files_of(orders, content=0))

    assert orders.metadata.format_version == 2
    assert deleted / written > 0.25


def test_one_country_has_more_than_twenty_times_the_others(tables: dict[str, Table]) -> None:
    sizes: dict[str, int] = {}
    for file in files_of(tables["demo.skewed"], content=0):
        country = file["partition"]["country"]
        sizes[country] = sizes.get(country, 0) + file["record_count"]
    *others, largest = sorted(sizes.values())

    assert largest > 20 * statistics.mean(others)


def test_churn_has_hundreds_of_snapshots_and_few_files(tables: dict[str, Table]) -> None:
    churn = tables["demo.churn"]

    assert len(churn.metadata.snapshots) == 320
    assert len(files_of(churn, content=0)) < 16


@pytest.mark.parametrize("name", ["demo.healthy", "demo.lineitem", "demo.region"])
def test_healthy_tables_have_one_snapshot_and_few_files(
    name: str, tables: dict[str, Table]
) -> None:
    table = tables[name]

    assert len(table.metadata.snapshots) == 1
    assert len(files_of(table, content=0)) < 16
    assert files_of(table, content=1) == []


def reachable(table: Table) -> set[str]:
    """Every file that the table's metadata leads to."""
    metadata = table.metadata
    paths = {table.metadata_location, *(entry.metadata_file for entry in metadata.metadata_log)}
    for snapshot in metadata.snapshots:
        paths.add(snapshot.manifest_list)
        for manifest in snapshot.manifests(table.io):
            if manifest.manifest_path not in paths:
                paths.add(manifest.manifest_path)
                entries = manifest.fetch_manifest_entry(table.io, discard_deleted=False)
                paths |= {entry.data_file.file_path for entry in entries}
    return paths


def files_of(table: Table, content: int) -> list[dict[str, Any]]:
    return [file for file in table.inspect.files().to_pylist() if file["content"] == content]


def live_rows(table: Table) -> int:
    return len(table.scan(selected_fields=(table.schema().fields[0].name,)).to_arrow())
