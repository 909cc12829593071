"""Every client on every engine: TPC-H as the engine itself answers it, names, types, errors.

The engines are those of the session; the clients are the official ones: trino-python, psycopg,
psql, SQLAlchemy, Trino's CLI and JDBC driver, dbt.
"""

from __future__ import annotations

import os
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
import sqlalchemy as sa
from trino.dbapi import connect

from lakehouse_core.domain.query import EngineId
from lakehouse_core.engines.base import Statement
from lakehouse_core.routing.request import Request
from lakehouse_core.runtime.report import SilentReporter
from tests.integration.gateway import clients
from tests.integration.gateway.clients import Jdbc
from tests.integration.gateway.harness import Gateway
from tests.integration.gateway.tpch import make_tpch, queries
from tools.trino_clients import ensure_clients

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from lakehouse_core.config import Config
    from lakehouse_core.config.environment import Machine
    from lakehouse_core.runtime.java import Java
    from tests.network import NetworkGuard

pytestmark = pytest.mark.long
# Minutes long. Spark looks up after it was cancelled only when a row comes out of the inner loop:
# three tables would keep a core busy until its server stops.
ENDLESS = (
    "SELECT count(*) FROM lineitem a CROSS JOIN lineitem b "
    "WHERE a.l_comment || b.l_comment LIKE '%never%'"
)
OIDS = {"integer": 23, "bigint": 20, "varchar": 1043, "date": 1082, "double": 701, "decimal": 1700}
# What a protocol does to rows is the same on every engine, and these take minutes on two cores.
ALL_PROTOCOLS = bool(os.environ.get("LAKEHELM_TEST_ALL_PROTOCOLS"))
WORDS = {"int32": "integer", "int64": "bigint", "string": "varchar", "large_string": "varchar",
         "date32[day]": "date", "double": "double"}  # fmt: skip


class Site:
    """A gateway before one engine, and the engine itself."""

    def __init__(self, name: str, gateway: Gateway) -> None:
        self.name = name
        self.gateway = gateway
        self._known: dict[str, tuple[list[str], list[list[Any]]]] = {}

    def direct(self, sql: str, dialect: str) -> tuple[list[str], list[list[Any]]]:
        """Types in Trino's words and rows, of the engine asked for what the gateway sends it."""
        request = Request(sql=sql, dialect=dialect, user="ana", catalog="lake", schema="tpch")
        sent = self.gateway.run(_decided(self.gateway, request))
        if sent not in self._known:
            self._known[sent] = self._ask(sent)
        return self._known[sent]

    def _ask(self, sql: str) -> tuple[list[str], list[list[Any]]]:
        if self.name == "trino":
            port = self.gateway.config.engines["trino"].port
            cursor = connect(  # type: ignore[no-untyped-call]
                host="127.0.0.1", port=port, user="ana", catalog="lake", schema="tpch"
            ).cursor()
            rows = cursor.execute(sql).fetchall()
            return [column.type_code for column in cursor.description], plain(rows)
        engine = self.gateway.port._parts.engines[EngineId(self.name)]
        found = engine.execute(Statement(sql=sql, user="ana")).rows
        types = [WORDS.get(str(one), str(one)) for one in found.schema.types]
        words = [one.replace("decimal128", "decimal").replace(", ", ",") for one in types]
        return words, plain(row.values() for row in found.to_pylist())


async def _decided(gateway: Gateway, request: Request) -> str:
    flight = gateway.port._parts.service.decide(request)
    assert flight.decision is not None
    return flight.decision.sql


def wait_for(what: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.05)


def plain(rows: Any) -> list[list[Any]]:
    """Rows that compare: an engine may add doubles in another order each time."""
    return [[round(v, 4) if isinstance(v, float) else v for v in row] for row in rows]


def only(config: Config, engine: str) -> Config:
    """The configuration with one engine that everything goes to; eve may write."""
    roles = {
        "engineer": {"users": ["eve"], "statements": ["read", "write", "define"]},
        "analyst": {},
    }
    changed = {
        "engines": {engine: config.engines[engine]},
        "routing": type(config.routing)(),
        "governance": type(config.governance).model_validate({"roles": roles}),
        "collect": {},
    }
    return config.model_copy(update=changed)


@pytest.fixture(scope="module")
def tpch_lake(lake_config: Config) -> Config:
    make_tpch(lake_config)
    return lake_config


@pytest.fixture(
    scope="module",
    params=[
        # The clients are Java programs: all of it runs where Java runs.
        pytest.param("duckdb", marks=pytest.mark.spark),
        pytest.param("spark", marks=pytest.mark.spark),
        pytest.param("trino", marks=pytest.mark.trino),
    ],
)
def site(
    request: pytest.FixtureRequest, tpch_lake: Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    name = request.param
    if name != "duckdb":
        request.getfixturevalue(f"{name}_server")
    folder = tmp_path_factory.mktemp(f"gateway-{name}")
    with closing(Gateway(only(tpch_lake, name), folder)) as gateway:
        yield Site(name, gateway)


@pytest.fixture(scope="module")
def jars(machine: Machine, network_guard: NetworkGuard) -> tuple[Path, Path]:
    """The CLI's jar and the driver's."""
    with network_guard.opened():
        return ensure_clients(machine, SilentReporter())


@pytest.fixture(scope="module")
def jdbc(site: Site, jars: tuple[Path, Path], spark_java: Java) -> Iterator[Jdbc]:
    with closing(Jdbc(spark_java, jars[1], site.gateway)) as program:
        yield program


def test_tpch_is_what_the_engine_itself_says(site: Site) -> None:
    """Rows and types of all 22 queries; on DuckDB each over both protocols, else in turn."""
    postgres = psycopg.connect(
        host="127.0.0.1", port=site.gateway.port.postgres_port, user="ana", dbname="lake",
        options="-c search_path=tpch", autocommit=True,
    )  # fmt: skip
    cursor = site.gateway.connect().cursor()
    with postgres:
        for number, sql in queries().items():
            is_both = ALL_PROTOCOLS or site.name == "duckdb"
            if is_both or number % 2:
                types, rows = site.direct(sql, "trino")
                assert plain(cursor.execute(sql).fetchall()) == rows, number
                assert [column.type_code for column in cursor.description] == types, number
            if not is_both and number % 2:
                continue
            types, rows = site.direct(sql, "postgres")
            answer = postgres.execute(sql)
            assert plain(answer.fetchall()) == rows, number
            oids = [column.type_code for column in answer.description or ()]
            assert oids == [OIDS[one.partition("(")[0]] for one in types], number


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT CAST('x' AS char(3)), TIMESTAMP '2020-01-01 00:00:00.123456789 Europe/Paris'",
        "SELECT MAP(ARRAY['a'], ARRAY[1.5]), ROW(1, 'x'), X'ff00', TIME '01:02:03.004'",
        "SELECT INTERVAL '2' DAY, JSON '[1]', UUID '12151fd2-7586-11e9-8f9e-2a86e4085a59'",
    ],
)
@pytest.mark.parametrize("site", [pytest.param("trino", marks=pytest.mark.trino)], indirect=True)
def test_types_that_only_trino_has_come_as_they_are(site: Site, sql: str) -> None:
    cursor = site.gateway.connect().cursor()
    rows = cursor.execute(sql).fetchall()
    assert ([one.type_code for one in cursor.description], plain(rows)) == site.direct(sql, "trino")


def test_trinos_cli(site: Site, jars: tuple[Path, Path], spark_java: Java) -> None:
    script = (
        "SHOW CATALOGS; SHOW TABLES LIKE 'part%'; DESCRIBE nation; USE lake.tpch; "
        "PREPARE p FROM SELECT n_name FROM nation WHERE n_nationkey = ?; EXECUTE p USING 7; "
        "DESCRIBE OUTPUT p; DEALLOCATE PREPARE p; SET SESSION query_max_run_time = '5m'; "
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'tpch' "
        "AND table_name LIKE 'r%'; "
        "SELECT CAST(1.50 AS decimal(4,2)), DATE '2026-02-28', true, ARRAY[1, 2], 'Zoë', "
        "CAST(NULL AS varchar)"
    )
    ran = clients.cli(spark_java, jars[0], site.gateway, script)
    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    assert lines[:4] == ["lake", "system", "part", "partsupp"]
    assert lines[4] == "n_nationkey,integer,,"
    described = lines[lines.index("GERMANY") + 1]
    assert described.startswith("n_name,")
    assert described.split(",")[4] == "varchar"
    assert lines[-2:] == ["region", "1.50,2026-02-28,true,[1, 2],Zoë,"]

    failed = clients.cli(spark_java, jars[0], site.gateway, "SELECT 1,\n  nope FROM nation")
    assert failed.code == 1
    assert "line 2:3" in failed.err
    assert "nope" in failed.err


def test_the_jdbc_driver_is_told_names_and_types(jdbc: Jdbc) -> None:
    assert [row[0] for row in jdbc.ask("catalogs").rows] == ["lake", "system"]
    assert "tpch" in [row[0] for row in jdbc.ask("schemas", "lake").rows]
    tables = jdbc.ask("tables", "lake", "tpch", "part%").rows
    assert [(row[2], row[3]) for row in tables] == [("part", "TABLE"), ("partsupp", "TABLE")]
    columns = jdbc.ask("columns", "lake", "tpch", "orders").rows
    kinds = {row[3]: (row[4], row[5]) for row in columns}
    assert kinds["o_orderkey"] == ("-5", "bigint")
    assert kinds["o_totalprice"] == ("3", "decimal(15,2)")
    assert kinds["o_orderdate"] == ("91", "date")
    assert "bigint" in [row[0] for row in jdbc.ask("types").rows]
    assert jdbc.ask("keys", "lake", "tpch", "orders").rows == []


def test_the_jdbc_driver_runs_tpch(site: Site, jdbc: Jdbc) -> None:
    for number in (1, 3, 13, 18):
        sql = queries()[number]
        types, rows = site.direct(sql, "trino")
        told = jdbc.ask("query", sql)
        assert told.types == [kind.replace(", ", ",") for kind in types], number
        assert len(told.rows) == len(rows), number
        for ours, theirs in zip(told.rows, rows, strict=True):
            assert _texts(ours, types) == [str(value) for value in theirs], number


def _texts(values: list[str], types: list[str]) -> list[str]:
    return [
        str(round(float(value), 4)) if kind == "double" else value
        for value, kind in zip(values, types, strict=True)
    ]


def test_the_jdbc_driver_prepares_describes_and_binds(jdbc: Jdbc) -> None:
    sql = "SELECT n_name FROM nation WHERE n_nationkey = ? AND n_name <> ?"
    assert jdbc.ask("prepared", sql, "long:7", "text:it's").rows == [["GERMANY"]]
    count = (
        "SELECT count(*) AS c FROM orders WHERE o_orderdate < ? AND o_totalprice > ? "
        "AND CAST(? AS varchar) IS NULL"
    )
    bound = jdbc.ask("prepared", count, "date:1995-01-01", "decimal:1000.50", "null:").rows
    plainly = "SELECT count(*) FROM orders WHERE o_orderdate < DATE '1995-01-01' AND o_totalprice > 1000.50"  # noqa: E501
    assert bound == jdbc.ask("query", plainly).rows
    described = jdbc.ask("described", "SELECT n_name, n_nationkey FROM nation WHERE n_name = ?")
    assert described.rows == [["parameters", "1"]]
    assert (described.labels, described.types) == (
        ["n_name", "n_nationkey"],
        ["varchar", "integer"],
    )


def test_the_jdbc_driver_cancels_and_is_told_what_is_wrong(site: Site, jdbc: Jdbc) -> None:
    ((kind, *_),) = jdbc.ask("cancel", ENDLESS).rows
    assert kind == "error"
    wait_for(lambda: site.gateway.port.service.running == 0)
    ((_, code, _, message),) = jdbc.ask("query", "SELECT nope FROM nation").rows
    assert code == "47"  # COLUMN_NOT_FOUND
    assert "line 1:8" in message
    ((_, code, _, message),) = jdbc.ask("query", "SELECT 1 FROM no_such_table").rows
    assert code == "46"  # TABLE_NOT_FOUND
    assert "no_such_table" in message
    ((_, code, _, message),) = jdbc.ask("query", "SELEC 1").rows
    assert code == "1"  # SYNTAX_ERROR
    assert "line 1:" in message
    assert jdbc.ask("query", "SELECT count(*) FROM nation").rows == [["25"]]


def test_dbt(site: Site, tmp_path: Path) -> None:
    """DuckDB reads only: there dbt tests its sources; elsewhere it builds."""
    schema = f"dbt_{site.name}"
    verb = ("test", "--select", "source:*") if site.name == "duckdb" else ("build",)
    for _ in range(1 if site.name == "duckdb" else 2):  # the second run is incremental
        ran = clients.dbt(site.gateway, schema, tmp_path, *verb)
        assert ran.code == 0, ran.out
    ended = clients.dbt_results(tmp_path)
    assert set(ended.values()) <= {"pass", "success"}
    assert "source_unique_tpch_nation_n_nationkey" in ended
    shown = clients.dbt(
        site.gateway, schema, tmp_path, "show", "--inline",
        "SELECT n_name FROM {{ source('tpch', 'nation') }} WHERE n_nationkey = 7",
    )  # fmt: skip
    assert "GERMANY" in shown.out, shown.out
    if site.name != "duckdb":
        built = f"lake.{schema}.customers_by_nation"
        count = f"SELECT count(*), sum(customers) FROM {built}"  # noqa: S608 names of our own
        assert site.gateway.rows(count) == [[25, 1500]]
        days = f"SELECT count(*) FROM lake.{schema}.days"  # noqa: S608 as above
        assert site.gateway.rows(days) == [[1]]


def test_psql(site: Site) -> None:
    assert clients.psql(site.gateway, r"\dt tpch.*").out.count("tpch|") == 8
    assert "n_name|character varying" in clients.psql(site.gateway, r"\d tpch.nation").out
    ran = clients.psql(site.gateway, "SELECT n_name FROM lake.tpch.nation WHERE n_nationkey = 3")
    assert ran.out == "CANADA\n", ran.err
    failed = clients.psql(site.gateway, "SELECT nope FROM lake.tpch.nation")
    assert failed.code == 1
    assert "nope" in failed.err
    assert "LINE 1" in failed.err


# The dialect takes the columns of a table's partitions for an index, on Trino itself as well.
@pytest.mark.filterwarnings("ignore:index key:sqlalchemy.exc.SAWarning")
def test_sqlalchemy(site: Site) -> None:
    engine = sa.create_engine(f"trino://ana@127.0.0.1:{site.gateway.port.port}/lake/tpch")
    nation = sa.Table("nation", sa.MetaData(), autoload_with=engine)
    wanted = sa.select(nation.c.n_name).where(nation.c.n_nationkey == 7)
    with engine.connect() as connection:
        assert connection.execute(wanted).scalar_one() == "GERMANY"
    engine.dispose()
