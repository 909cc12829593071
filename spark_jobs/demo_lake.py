"""Builds the demo lakehouse: TPC-H and five tables that are sick (or not) in known ways.

    python spark_jobs/demo_lake.py --plan plan.json

The plan is a JSON object: `conf` (Spark settings with the jars and the lake's catalog), `master`,
`scale` (TPC-H scale factor; the other tables grow with it), `seed`, `work_dir` (scratch), `marker`
(the file that says "built") and optionally `anchor` (the instant where the events end) and
`catalog`. Same scale, seed and anchor give the same rows; their counts and checksums are in the
marker, which is written last. With a matching marker nothing is done; without one our tables are
dropped first.

| table | what is wrong with it |
|---|---|
| demo.lineitem, demo.orders and the six others of TPC-H | nothing |
| demo.events | 14 days of hourly appends: 336 small files |
| demo.orders_cdc | merge-on-read changes: position deletes |
| demo.skewed | one country has 60 times the rows of each other |
| demo.churn | every commit replaces a file: 320 snapshots |
| demo.healthy | nothing: four sorted files, one snapshot |
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import math
import os
import shutil
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

FORMAT = 2  # raised when the same scale and seed shall give other tables than before
DEFAULT_ANCHOR = "2026-11-01T00:00:00Z"
NAMESPACE = "demo"
TPCH_TABLES = (
    "customer",
    "lineitem",
    "nation",
    "orders",
    "part",
    "partsupp",
    "region",
    "supplier",
)
DEMO_TABLES = ("events", "orders_cdc", "skewed", "churn", "healthy")
EVENT_DAYS, APPENDS_PER_DAY = 14, 24
DAY_MICROS = 86_400_000_000
CHURN_COMMITS, CHURN_COMMITS_PER_TRANSACTION, CHURN_LIVE_FILES = 320, 40, 8
CDC_ROUNDS = 5
COUNTRIES = "array('DE','AT','BE','CZ','DK','ES','FI','FR','IE','IT','NL','PL','PT','SE')"
SKEW_FACTOR = 60
TARGET_FILE_BYTES = 128 * 2**20
# Short-lived JVM: compiling hot loops a second time costs more than it brings at these sizes.
SHORT_JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SHORT_JVM_MAX_SCALE = 0.5
WORKERS = 3  # commits wait for the file system most of the time


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to build, and where."""

    conf: dict[str, str]
    master: str
    scale: float
    seed: int
    work_dir: Path
    marker: Path
    anchor: str = DEFAULT_ANCHOR
    catalog: str = "lake"

    @classmethod
    def read(cls, path: Path) -> Plan:
        """The plan from its file."""
        raw = json.loads(path.read_text(encoding="utf-8"))
        return cls(**raw | {key: Path(raw[key]) for key in ("work_dir", "marker")})

    @property
    def identity(self) -> dict[str, Any]:
        """What decides the content of the lake."""
        return {
            "format": FORMAT,
            "scale": self.scale,
            "seed": self.seed,
            "anchor": self.anchor,
        }

    @property
    def factor(self) -> float:
        """How much larger the demo tables are than at scale 0.1."""
        return max(self.scale * 10, 0.1)

    def anchor_micros(self) -> int:
        """The anchor in microseconds since 1970."""
        instant = datetime.fromisoformat(self.anchor).astimezone(UTC)
        return int(instant.timestamp()) * 1_000_000


@dataclass(kw_only=True)
class Progress:
    """Prints `progress <n>/<total> <what>` from any thread."""

    total: int
    done: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def step(self, what: str) -> None:
        """Say that one more of the parts is done."""
        with self.lock:
            self.done += 1
            print(f"progress {self.done}/{self.total} {what}", flush=True)


def main(argv: list[str] | None = None) -> int:
    """Build the lake of a plan unless it is there already."""
    parser = argparse.ArgumentParser(description="Build the demo lakehouse.")
    parser.add_argument("--plan", type=Path, required=True, help="JSON file, see the module")
    plan = Plan.read(parser.parse_args(argv).plan)
    plan.marker.parent.mkdir(parents=True, exist_ok=True)
    with _lock(plan.marker.with_suffix(".lock")):
        if is_built(plan):
            print(f"the demo lake of scale {plan.scale} and seed {plan.seed} is built", flush=True)
            return 0
        plan.marker.unlink(missing_ok=True)
        build(plan)
    return 0


def is_built(plan: Plan) -> bool:
    """Whether the marker tells of exactly this lake."""
    try:
        marker = json.loads(plan.marker.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return False
    return all(marker.get(key) == value for key, value in plan.identity.items())


def build(plan: Plan) -> None:
    """Drop our tables, write them anew, and leave the marker."""
    started = time.monotonic()
    progress = Progress(total=2 + len(TPCH_TABLES) + len(DEMO_TABLES))
    scratch = plan.work_dir / "demo-lake"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    with ThreadPoolExecutor(WORKERS) as pool:
        tpch = pool.submit(generate_tpch, plan.scale, scratch)  # while the JVM starts
        spark = open_spark(plan)
        try:
            clear(spark, plan)
            progress.step("Spark started, old demo tables dropped")
            tables = _write_all(spark, plan, pool, tpch, progress)
        finally:
            pool.shutdown(cancel_futures=True)
            spark.stop()
            shutil.rmtree(scratch, ignore_errors=True)
    _write_marker(plan, tables, time.monotonic() - started)


def open_spark(plan: Plan) -> SparkSession:
    """A Spark of our own with the plan's settings."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 a finished lake needs no Spark

    conf = {
        # Most writes are one small task: planning for more costs more than the work.
        "spark.sql.adaptive.enabled": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.log.level": "ERROR",
    } | plan.conf
    conf["spark.sql.shuffle.partitions"] = "4"
    if plan.scale <= SHORT_JVM_MAX_SCALE:
        options = conf.get("spark.driver.extraJavaOptions", "")
        conf["spark.driver.extraJavaOptions"] = f"{options} {SHORT_JVM_OPTIONS}".strip()
    builder = SparkSession.builder.master(plan.master).appName("lakehelm-demo-lake")
    for key, value in conf.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    local = _file_system(spark, "file:///")
    # Without Hadoop's native library each new file costs a process (chmod), and as many again for
    # its .crc file, which nobody reads here: Parquet and Avro have checksums of their own.
    local.setWriteChecksum(False)
    return spark


def clear(spark: SparkSession, plan: Plan) -> None:
    """Remove our tables and what a killed build left in their folders; have the namespace.

    Through Iceberg's own catalog: `DROP TABLE` reads the table first, which fails on the damaged
    metadata that a crash may leave. The files go with the folder, so nothing needs to be listed.
    """
    iceberg = _jvm(spark).org.apache.iceberg
    catalog = iceberg.spark.Spark3Util.loadIcebergCatalog(spark._jsparkSession, plan.catalog)
    warehouse = plan.conf[f"spark.sql.catalog.{plan.catalog}.warehouse"].rstrip("/")
    files = _file_system(spark, warehouse)
    whole = {"name": f"{plan.catalog}.{NAMESPACE}"}
    spark.sql("CREATE NAMESPACE IF NOT EXISTS IDENTIFIER(:name)", args=whole)
    for name in (*TPCH_TABLES, *DEMO_TABLES):
        identifier = iceberg.catalog.TableIdentifier.parse(f"{NAMESPACE}.{name}")
        catalog.dropTable(identifier, False)
        folder = f"{warehouse}/{NAMESPACE}/{name}"
        files.delete(_jvm(spark).org.apache.hadoop.fs.Path(folder), True)


def _write_all(
    spark: SparkSession,
    plan: Plan,
    pool: ThreadPoolExecutor,
    tpch: Future[dict[str, Path]],
    progress: Progress,
) -> dict[str, dict[str, Any]]:
    def one(name: str, write: Callable[[SparkSession], None]) -> dict[str, Any]:
        session = _session(spark, plan)
        write(session)
        summary = summarise(session, name)
        progress.step(f"{plan.catalog}.{NAMESPACE}.{name}: {summary['rows']:,} rows")
        return summary

    demo: dict[str, Callable[[SparkSession], None]] = {
        "events": lambda session: write_events(session, plan),
        "churn": lambda session: write_churn(session, plan),
        "orders_cdc": lambda session: write_orders_cdc(session, plan),
        "skewed": lambda session: write_skewed(session, plan),
        "healthy": lambda session: write_healthy(session, plan),
    }
    running = {name: pool.submit(one, name, write) for name, write in demo.items()}
    files = tpch.result()
    progress.step("TPC-H generated")
    for name, path in files.items():
        running[name] = pool.submit(one, name, _tpch_writer(name, path))
    return {
        f"{plan.catalog}.{NAMESPACE}.{name}": work.result()
        for name, work in sorted(running.items())
    }


# --- TPC-H ---------------------------------------------------------------------------------------


def generate_tpch(scale: float, scratch: Path) -> dict[str, Path]:
    """TPC-H from DuckDB's dbgen as one Parquet file per table."""
    import duckdb  # noqa: PLC0415 a finished lake needs no DuckDB

    spec = find_spec("duckdb_extension_tpch")
    if spec is None or spec.origin is None:
        raise SystemExit(f"pip install duckdb-extension-tpch=={duckdb.__version__}")
    extension = Path(spec.origin).parent / f"extensions/v{duckdb.__version__}/tpch.duckdb_extension"
    with duckdb.connect(str(scratch / "tpch.duckdb")) as connection:
        connection.load_extension(str(extension))
        connection.execute("CALL dbgen(sf := $scale)", {"scale": scale})
        files = {name: scratch / f"{name}.parquet" for name in TPCH_TABLES}
        for name, path in files.items():
            connection.table(name).write_parquet(str(path), compression="zstd")
    return files


def _tpch_writer(name: str, path: Path) -> Callable[[SparkSession], None]:
    def write(session: SparkSession) -> None:
        frame = session.read.parquet(path.as_uri())
        least = {"lineitem": 8, "orders": 4}.get(name, 1)
        files = max(least, math.ceil(path.stat().st_size / TARGET_FILE_BYTES))
        if files > 1:
            frame = frame.repartitionByRange(files, frame.columns[0])
        else:
            frame = frame.coalesce(1)
        frame.writeTo(name).using("iceberg").tableProperty("format-version", "2").create()

    return write


# --- the demo tables: every value is a hash of row number, seed and a salt ------------------------


def rows(session: SparkSession, plan: Plan, count: int, parts: int = 1) -> DataFrame:
    """Row numbers with the seed and the anchor beside them, in `parts` equal runs."""
    from pyspark.sql import functions as f  # noqa: PLC0415 only with Spark

    return session.range(0, count, 1, parts).select(
        "id", f.lit(plan.seed).alias("seed"), f.lit(plan.anchor_micros()).alias("anchor")
    )


def write_events(session: SparkSession, plan: Plan) -> None:
    """Clicks of two weeks, one small append per hour; nights are quieter than days."""
    session.sql(
        "CREATE TABLE events (event_id BIGINT, event_at TIMESTAMP, user_id BIGINT, kind STRING,"
        " page STRING, country STRING, duration_ms INT, revenue DECIMAL(10,2))"
        " USING iceberg PARTITIONED BY (days(event_at)) TBLPROPERTIES ('format-version'='2',"
        " 'write.distribution-mode'='none', 'write.wap.enabled'='true')"
    )
    appends = EVENT_DAYS * APPENDS_PER_DAY
    per_append = max(20, int(1_000 * plan.factor))
    frame = (
        rows(session, plan, appends * per_append, appends)
        .selectExpr("*", f"CAST(id DIV {per_append} AS INT) AS hour")
        .where(
            "pmod(xxhash64(id, seed, 'keep'), 1000) < 300 + 600 * sin(pmod(hour, 24) * pi() / 24)"
        )
        .selectExpr(
            "id AS event_id",
            f"timestamp_micros(anchor - {EVENT_DAYS * DAY_MICROS}"
            " + hour * 3600000000 + pmod(xxhash64(id, seed, 'at'), 3600000000)) AS event_at",
            "pmod(xxhash64(id, seed, 'user'), 5000) AS user_id",
            "element_at(array('view','view','view','view','click','click','cart','purchase'),"
            " 1 + CAST(pmod(xxhash64(id, seed, 'kind'), 8) AS INT)) AS kind",
            "concat('/p/', pmod(xxhash64(id, seed, 'page'), 200)) AS page",
            f"element_at({COUNTRIES}, 1 + CAST(pmod(xxhash64(id, seed, 'land'), 14) AS INT))"
            " AS country",
            "CAST(pmod(xxhash64(id, seed, 'ms'), 30000) AS INT) AS duration_ms",
            "CAST(IF(pmod(xxhash64(id, seed, 'kind'), 8) = 7,"
            " pmod(xxhash64(id, seed, 'cents'), 50000) / 100, NULL) AS DECIMAL(10,2)) AS revenue",
        )
    )
    with staged_files(session, "events", frame) as (table, files):
        for day in range(0, len(files), APPENDS_PER_DAY):
            transaction = table.newTransaction()
            for file in files[day : day + APPENDS_PER_DAY]:
                transaction.newAppend().appendFile(file).commit()
            transaction.commitTransaction()


def write_churn(session: SparkSession, plan: Plan) -> None:
    """A status board: each commit writes one file and removes the oldest of eight."""
    session.sql(
        "CREATE TABLE churn (reading_id BIGINT, sensor_id INT, status STRING, reading DOUBLE,"
        " updated_at TIMESTAMP) USING iceberg TBLPROPERTIES ('format-version'='2',"
        " 'write.distribution-mode'='none', 'write.wap.enabled'='true')"
    )
    frame = rows(session, plan, CHURN_COMMITS * 50, CHURN_COMMITS).selectExpr(
        "id AS reading_id",
        "CAST(pmod(id, 50) AS INT) AS sensor_id",
        "IF(pmod(xxhash64(id, seed, 'bad'), 20) = 0, 'fault', 'ok') AS status",
        "pmod(xxhash64(id, seed, 'value'), 100000) / 1000.0D AS reading",
        "timestamp_micros(anchor - 86400000000 + (id DIV 50) * 270000000) AS updated_at",
    )
    with staged_files(session, "churn", frame) as (table, files):
        for start in range(0, len(files), CHURN_COMMITS_PER_TRANSACTION):
            transaction = table.newTransaction()
            for number in range(start, min(start + CHURN_COMMITS_PER_TRANSACTION, len(files))):
                overwrite = transaction.newOverwrite().addFile(files[number])
                if number >= CHURN_LIVE_FILES:
                    overwrite = overwrite.deleteFile(files[number - CHURN_LIVE_FILES])
                overwrite.commit()
            transaction.commitTransaction()


def write_orders_cdc(session: SparkSession, plan: Plan) -> None:
    """Orders that a change stream keeps up to date: MERGE, UPDATE and DELETE, merge-on-read."""
    session.sql(
        "CREATE TABLE orders_cdc (order_id BIGINT, customer_id BIGINT, status STRING,"
        " total DECIMAL(12,2), version INT, updated_at TIMESTAMP)"
        " USING iceberg PARTITIONED BY (bucket(4, order_id)) TBLPROPERTIES ('format-version'='2',"
        " 'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read',"
        " 'write.merge.mode'='merge-on-read')"
    )
    count = max(4_000, int(60_000 * plan.factor))
    rows(session, plan, count).selectExpr(
        "id AS order_id",
        "pmod(xxhash64(id, seed, 'customer'), 3000) AS customer_id",
        "'open' AS status",
        "CAST(pmod(xxhash64(id, seed, 'total'), 5000000) / 100 AS DECIMAL(12,2)) AS total",
        "1 AS version",
        "timestamp_micros(anchor - 7 * 86400000000 + id * 1000) AS updated_at",
    ).writeTo("orders_cdc").append()
    for number in range(CDC_ROUNDS):
        _change_orders(session, plan, count, number)


def _change_orders(session: SparkSession, plan: Plan, count: int, number: int) -> None:
    changes = (
        rows(session, plan, count + count // 50)
        .selectExpr("*", f"pmod(xxhash64(id, seed, 'round', {number}), 100) AS draw")
        .where(f"draw < 12 AND id < {count} OR pmod(id, {CDC_ROUNDS}) = {number} AND id >= {count}")
        .selectExpr(
            "id AS order_id",
            "CASE WHEN draw < 3 THEN 'delete' ELSE 'upsert' END AS op",
            "pmod(xxhash64(id, seed, 'customer'), 3000) AS customer_id",
            "CASE WHEN draw < 8 THEN 'shipped' ELSE 'paid' END AS status",
            f"CAST(pmod(xxhash64(id, seed, {number}), 5000000) / 100 AS DECIMAL(12,2)) AS total",
            f"timestamp_micros(anchor - {CDC_ROUNDS - number} * 3600000000 + id * 1000) AS at",
        )
    )
    changes.createOrReplaceTempView("changes")
    session.sql(
        "MERGE INTO orders_cdc t USING changes s ON t.order_id = s.order_id"
        " WHEN MATCHED AND s.op = 'delete' THEN DELETE"
        " WHEN MATCHED THEN UPDATE SET status = s.status, total = s.total,"
        "  version = t.version + 1, updated_at = s.at"
        " WHEN NOT MATCHED AND s.op = 'upsert' THEN INSERT"
        "  (order_id, customer_id, status, total, version, updated_at)"
        "  VALUES (s.order_id, s.customer_id, s.status, s.total, 1, s.at)"
    )


def write_skewed(session: SparkSession, plan: Plan) -> None:
    """Sales by country, where one country has nearly everything."""
    session.sql(
        "CREATE TABLE skewed (sale_id BIGINT, country STRING, sold_at TIMESTAMP, product STRING,"
        " amount DECIMAL(10,2)) USING iceberg PARTITIONED BY (country)"
        " TBLPROPERTIES ('format-version'='2', 'write.distribution-mode'='hash')"
    )
    ordinary = max(150, int(1_500 * plan.factor))
    rows(session, plan, ordinary * (13 + SKEW_FACTOR), 2).selectExpr(
        "id AS sale_id",
        # The hot country is the first of the list; row numbers beyond the others' all go there.
        f"element_at({COUNTRIES}, IF(id < {13 * ordinary}, 2 + CAST(pmod(id, 13) AS INT), 1))"
        " AS country",
        "timestamp_micros(anchor - pmod(xxhash64(id, seed, 'at'), 30 * 86400000000)) AS sold_at",
        "concat('sku-', pmod(xxhash64(id, seed, 'sku'), 1000)) AS product",
        "CAST(pmod(xxhash64(id, seed, 'amount'), 100000) / 100 AS DECIMAL(10,2)) AS amount",
    ).writeTo("skewed").append()


def write_healthy(session: SparkSession, plan: Plan) -> None:
    """Accounts in four files, sorted, one snapshot."""
    session.sql(
        "CREATE TABLE healthy (account_id BIGINT, owner STRING, country STRING,"
        " balance DECIMAL(14,2), opened_on DATE, is_active BOOLEAN) USING iceberg"
        " TBLPROPERTIES ('format-version'='2', 'write.distribution-mode'='none')"
    )
    count = max(10_000, int(100_000 * plan.factor))
    rows(session, plan, count, 4).selectExpr(
        "id AS account_id",
        "concat('owner-', pmod(xxhash64(id, seed, 'owner'), 40000)) AS owner",
        f"element_at({COUNTRIES}, 1 + CAST(pmod(xxhash64(id, seed, 'land'), 14) AS INT))"
        " AS country",
        "CAST(pmod(xxhash64(id, seed, 'balance'), 100000000) / 100 AS DECIMAL(14,2)) AS balance",
        "date_add(DATE '2018-01-01', CAST(pmod(xxhash64(id, seed, 'on'), 3000) AS INT))"
        " AS opened_on",
        "pmod(xxhash64(id, seed, 'active'), 10) > 0 AS is_active",
    ).writeTo("healthy").append()


@contextlib.contextmanager
def staged_files(
    session: SparkSession, name: str, frame: DataFrame
) -> Iterator[tuple[Any, list[Any]]]:
    """Write a frame's files into an empty table without publishing them, one file per task.

    Hundreds of separate Spark writes would take minutes. The files are written by one job as a
    staged snapshot (write-audit-publish); the caller then commits them one by one, in row order,
    through Iceberg's own API, which gives the snapshots, manifests and files of as many small
    writes. The staged snapshot and its two files are removed at the end.
    """
    session.conf.set("spark.wap.id", f"demo-lake-{name}")
    frame.writeTo(name).append()
    session.conf.unset("spark.wap.id")
    # A short name would be looked up in the thread's active session, which may be another one.
    where = session.sql("SELECT current_catalog(), current_schema()").collect()[0]
    table = _jvm(session).org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
        session._jsparkSession, ".".join((*where, name))
    )
    (staged,) = list(table.snapshots())
    manifests = [manifest.path() for manifest in staged.allManifests(table.io())]
    # A file's name starts with the number of the task that wrote it, padded with zeros.
    files = sorted(staged.addedDataFiles(table.io()), key=lambda file: str(file.location()))
    yield table, files
    expire = table.expireSnapshots().expireSnapshotId(staged.snapshotId())
    expire.cleanExpiredFiles(False).commit()
    for path in (*manifests, staged.manifestListLocation()):
        table.io().deleteFile(path)
    table.updateProperties().remove("write.wap.enabled").commit()
    session.sql("REFRESH TABLE IDENTIFIER(:name)", args={"name": name})


def summarise(session: SparkSession, name: str) -> dict[str, Any]:
    """Row count and a checksum that does not depend on files or order."""
    from pyspark.sql import functions as f  # noqa: PLC0415 only with Spark

    hashes = session.table(name).select(f.xxhash64("*").cast("decimal(38,0)").alias("h"))
    count, checksum = hashes.agg(f.count("*"), f.sum("h")).collect()[0]
    return {"rows": count, "checksum": str(checksum)}


def _session(spark: SparkSession, plan: Plan) -> SparkSession:
    """A session of its own, so that settings and current namespace are not shared by threads."""
    session = spark.newSession()
    # By statement: `session.catalog` looks at the thread's active session, which is not this one.
    session.sql("USE IDENTIFIER(:name)", args={"name": f"{plan.catalog}.{NAMESPACE}"})
    return session


def _write_marker(plan: Plan, tables: dict[str, dict[str, Any]], seconds: float) -> None:
    content = plan.identity | {
        "tables": tables,
        "rows": sum(table["rows"] for table in tables.values()),
        "built_at": datetime.now(UTC).isoformat(),
        "seconds": round(seconds, 1),
    }
    unfinished = plan.marker.with_suffix(".tmp")
    with unfinished.open("w", encoding="utf-8") as file:
        json.dump(content, file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(plan.marker)


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    """One build at a time; a second one waits, and then finds the marker."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _jvm(spark: SparkSession) -> Any:
    return spark._jvm


def _file_system(spark: SparkSession, uri: str) -> Any:
    jvm = _jvm(spark)
    configuration = spark._jsc.hadoopConfiguration()
    return jvm.org.apache.hadoop.fs.FileSystem.get(jvm.java.net.URI(uri), configuration)


if __name__ == "__main__":
    sys.exit(main())
