"""One lake behind Iceberg's own REST server: who writes does not matter, all read the same."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import zstandard

from agents.collect import run_once
from collectors.iceberg.source import iceberg_source
from lakehouse_core.catalog import open_catalog
from lakehouse_core.config import load_config
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.errors import NotInstalledError
from lakehouse_core.engines.base import Statement
from lakehouse_core.engines.registry import open_engine
from lakehouse_core.pipeline.service import Surroundings, run_pipeline
from lakehouse_core.pipeline.state import read_state
from lakehouse_core.runtime.java import find_javas, java_for_trino
from lakehouse_core.runtime.plan import Tools, spark_specs, trino_specs
from lakehouse_core.runtime.report import SilentReporter
from lakehouse_core.runtime.trino import ensure_server
from lakehouse_core.store.owner import OwnerStore
from lakehouse_core.store.rows import to_arrow
from tests.factories import NOW, free_port, query_event, unique

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa

    from lakehouse_core.config import Config
    from lakehouse_core.config.environment import Machine
    from lakehouse_core.runtime.java import Java
    from tests.fixtures_runtime import StartProcess
    from tests.network import NetworkGuard
    from tests.rest_catalog import RestServer

pytestmark = [
    pytest.mark.rest,
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

SECRET = "u7-not-for-logs"
CONFIG = """\
version: 1
profile: prod
home: {home}
catalogs:
  lake:
    type: rest
    uri: {uri}
    warehouse_folder: {warehouse}
    credential: file:{home}/credential
engines:
  duckdb: {{type: duckdb, catalog: lake}}
  spark:
    type: spark
    catalog: lake
    managed: true
    master: local[2]
    driver_memory: 1GiB
    port: {ports[0]}
    ui_port: {ports[1]}
  trino: {{type: trino, catalog: lake, managed: true, port: {ports[2]}, heap: 1GiB}}
spark: {{remote: "sc://127.0.0.1:{ports[0]}"}}
"""
INSERT = "INSERT INTO @t SELECT id, concat('r', id % 4) FROM range(@span)"
NUMBERS = "SELECT count(*) AS rows, sum(id) AS total, count(DISTINCT region) AS regions FROM @t"


@pytest.fixture(scope="module")
def config(rest_server: RestServer, tmp_path_factory: pytest.TempPathFactory) -> Config:
    home = tmp_path_factory.mktemp("rest-home")
    (home / "credential").write_text(f"lakehelm:{SECRET}")
    text = CONFIG.format(
        home=home,
        uri=rest_server.uri,
        warehouse=rest_server.warehouse,
        ports=[free_port() for _ in range(3)],
    )
    (home / "lakehelm.yaml").write_text(text)
    return load_config(home / "lakehelm.yaml", {}).config


@pytest.fixture(scope="module")
def spark(
    config: Config,
    machine: Machine,
    spark_java: Java,
    artifacts: list[Path],
    start_process: StartProcess,
) -> Config:
    """A Spark Connect server on the REST catalog."""
    del artifacts
    tools = Tools(machine=machine, spark_java=spark_java, trino_java=None, trino_server=None)
    (spec,) = spark_specs(config, tools)
    start_process(spec, config.home / "logs")
    return config


@pytest.fixture(scope="module")
def trino(
    config: Config, machine: Machine, network_guard: NetworkGuard, start_process: StartProcess
) -> Config:
    """A Trino server on the REST catalog."""
    try:
        java = java_for_trino(find_javas(machine))
    except NotInstalledError as error:
        pytest.skip(str(error))
    with network_guard.opened():
        server = ensure_server(machine, SilentReporter())
    tools = Tools(machine=machine, spark_java=None, trino_java=java, trino_server=server)
    (spec,) = trino_specs(config, tools)
    start_process(spec, config.home / "logs")
    return config


@pytest.fixture
def store(tmp_path: Path) -> Iterator[OwnerStore]:
    store = OwnerStore.at(tmp_path / "store")
    yield store
    store.close()


@pytest.fixture
def table(spark: Config) -> str:
    """Written by Spark in three commits: two appends to partitions, one delete by rows."""
    name = f"lake.{unique('rest').replace('-', '_')}.events"
    said(spark, "spark", f"CREATE NAMESPACE {name.rpartition('.')[0]}")
    said(
        spark,
        "spark",
        f"CREATE TABLE {name} (id BIGINT, region STRING) PARTITIONED BY (region) "
        "TBLPROPERTIES ('format-version' = '2', 'write.delete.mode' = 'merge-on-read')",
    )
    for span in ("0, 1000", "1000, 2000"):
        said(spark, "spark", INSERT.replace("@span", span), name)
    said(spark, "spark", "DELETE FROM @t WHERE id < 10", name)
    return name


def said(config: Config, engine_id: str, sql: str, table: str = "") -> pa.Table:
    """What an engine answers; `@t` stands for the table."""
    with closing(open_engine(engine_id, config)) as engine:
        return engine.execute(Statement(sql=sql.replace("@t", table), user="ana")).rows


def numbers(config: Config, engine_id: str, table: str) -> dict[str, Any]:
    (row,) = said(config, engine_id, NUMBERS, table).to_pylist()
    return {key: int(value) for key, value in row.items()}


def test_what_spark_writes_all_read(spark: Config, table: str, store: OwnerStore) -> None:
    wanted = numbers(spark, "spark", table)
    assert wanted == {"rows": 1_990, "total": sum(range(10, 2_000)), "regions": 4}
    assert numbers(spark, "duckdb", table) == wanted
    with closing(open_catalog("lake", spark.catalogs["lake"]).iceberg()) as iceberg:
        loaded = iceberg.load_table(table.removeprefix("lake."))
        ids = loaded.scan(selected_fields=("id",)).to_arrow().column("id").to_pylist()
        data_files = loaded.inspect.data_files().num_rows
        snapshots = [one.snapshot_id for one in loaded.snapshots()]
    assert (len(ids), sum(ids)) == (wanted["rows"], wanted["total"])

    source = iceberg_source(spark, store)
    with closing(source):
        report = run_once(source, store, utc_now, timeout=timedelta(minutes=1))
        again = run_once(source, store, utc_now, timeout=timedelta(minutes=1))
    assert report.error is None
    assert again.rows == 0
    (metrics,) = store.read(
        "SELECT data_files, total_rows, deleted_rows, snapshots FROM table_metrics "
        "WHERE table_id = $table",
        table=table,
    ).to_pylist()
    assert metrics["data_files"] == data_files
    assert metrics["total_rows"] - metrics["deleted_rows"] == wanted["rows"]
    commits = store.read(
        "SELECT snapshot_id FROM snapshot_commit WHERE table_id = $table", table=table
    )
    assert sorted(commits.column("snapshot_id").to_pylist()) == sorted(snapshots)


def test_the_pipeline_writes_its_tables_through_it(
    spark: Config, machine: Machine, store: OwnerStore
) -> None:
    assert read_state(spark).tables == {}
    events = [query_event(query_id=f"q{n}") for n in range(25)]
    store.upsert("query_event", to_arrow("query_event", events))
    around = Surroundings(machine=machine, clock=lambda: NOW + timedelta(minutes=1))
    report = run_pipeline(spark, store, around)
    assert (report.outcome, report.rows) == ("ok", 25)
    assert read_state(spark).through is not None
    bronze = said(spark, "duckdb", "SELECT count(*) AS n FROM lake.ops.query_event")
    assert bronze.column("n").to_pylist() == [25]


def test_the_credential_is_in_no_log(spark: Config, table: str) -> None:
    del table
    files = [path for path in spark.home.rglob("*") if path.is_file()]
    holders = {path.name for path in files if SECRET in _text(path)}
    assert holders == {"credential", "spark-secrets.conf"}


@pytest.mark.trino
def test_trino_reads_and_writes_the_same_lake(trino: Config, spark: Config, table: str) -> None:
    assert numbers(trino, "trino", table) == numbers(spark, "spark", table)
    said(trino, "trino", "INSERT INTO @t VALUES (5000, 'r9')", table)
    assert numbers(spark, "spark", table)["regions"] == 5
    assert numbers(spark, "duckdb", table)["regions"] == 5


def _text(path: Path) -> str:
    data = path.read_bytes()
    if path.suffix == ".zstd" or ".zstd" in path.suffixes:
        with zstandard.ZstdDecompressor().stream_reader(data) as reader:
            data = reader.read(2**26)
    return data.decode(errors="replace")
