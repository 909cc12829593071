"""TPC-H and TPC-DS on DuckDB, Spark and Trino: what routing brings against engines and rules.

    python benchmarks/tpc_engines.py [--json] [--scales 0.01,0.05] [--queries 22] [--variants 6]
    python benchmarks/tpc_engines.py --scales 0.01,0.03 --queries 3 --variants 4   # some minutes

Both suites are written as Iceberg tables at each scale, healthy (whole files) and fragmented (many
small ones). Every statement runs with other literals on each engine, once, after a round that
warms them up; rows must be equal. What the translator doubts is kept from its engine, as the router
does it, and so compared nowhere. Money is the demo's price book. The predictor learns from all but
the last third of the variants and routes the rest. Printed for it: total cost, seconds and p95 of
every engine alone, of a static rule set (four tables and more to Spark, three to Trino, others to
DuckDB), of ours and of the oracle. Limit: ours never more than 2 % above the best single engine.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
import time
import uuid
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlglot import exp, parse_one
from sqlglot.optimizer.qualify_tables import qualify_tables

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, its folder is on the path only

from benchmarks import _store
from benchmarks._timed_tpch import varied
from lakehouse_core import duck
from lakehouse_core.catalog import open_catalog
from lakehouse_core.config.environment import read_machine
from lakehouse_core.domain.errors import EngineError
from lakehouse_core.domain.query import EngineId
from lakehouse_core.engines.base import Statement
from lakehouse_core.engines.registry import open_engine
from lakehouse_core.routing.evaluate import evaluate
from lakehouse_core.routing.evaluate_data import Workload
from lakehouse_core.routing.learned import valuations_of
from lakehouse_core.runtime.artifacts import SPARK_JARS, ensure
from lakehouse_core.runtime.java import find_javas, java_for_spark, java_for_trino
from lakehouse_core.runtime.plan import Tools, spark_specs, trino_specs
from lakehouse_core.runtime.report import SilentReporter
from lakehouse_core.runtime.rundir import RUN_ID_VARIABLE, sweep
from lakehouse_core.runtime.secrets import ensure_tokens
from lakehouse_core.runtime.supervisor import Supervisor, Surroundings
from lakehouse_core.runtime.trino import ensure_server
from lakehouse_core.sql.translate import translate

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from lakehouse_core.config import Config
    from lakehouse_core.engines.base import Engine

ROOT = Path(__file__).parents[1]
ENGINES = ("duckdb", "spark", "trino")
MOST_ABOVE = 0.02
LEAST_SCALE = 0.01
FRAGMENT_BYTES, WHOLE_BYTES = 64 * 1024, 512 * 2**20
LARGE = {"lineitem", "orders", "partsupp", "store_sales", "catalog_sales", "web_sales", "inventory"}
PORTS = ("ENGINES__SPARK__PORT", "ENGINES__SPARK__UI_PORT", "ENGINES__TRINO__PORT",
         "GATEWAY__ADMIN_PORT", "GATEWAY__SQL__PORT", "GATEWAY__SQL__POSTGRES_PORT")  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """One statement of the workload."""

    suite: str
    number: int
    namespace: str
    variant: int
    sql: str  # DuckDB's dialect, tables with their full names
    tables: int


def settings(folder: Path) -> Config:
    environ = {f"LAKEHELM__{name}": str(_store.free_port()) for name in PORTS}
    environ |= {"LAKEHELM__ENGINES__SPARK__DRIVER_MEMORY": "1GiB"}
    environ |= {"LAKEHELM__ENGINES__TRINO__HEAP": "1GiB"}
    config = _store.demo_config(folder, environ)
    for catalog in config.catalogs.values():
        catalog.warehouse.mkdir(parents=True, exist_ok=True)
    ensure_tokens(config)
    return config


@contextmanager
def servers(config: Config) -> Iterator[None]:
    """Spark and Trino as `lakehelm up` starts them."""
    machine, run_id = read_machine(), uuid.uuid4().hex
    ensure(machine, SPARK_JARS, SilentReporter())
    javas = find_javas(machine)
    tools = Tools(
        machine=machine,
        spark_java=java_for_spark(javas),
        trino_java=java_for_trino(javas),
        trino_server=ensure_server(machine, SilentReporter()),
    )
    around = Surroundings(
        log_dir=config.home / "logs",
        env={**os.environ, RUN_ID_VARIABLE: run_id},
        reporter=SilentReporter(),
        on_change=lambda _: None,
    )
    specs = [*spark_specs(config, tools), *trino_specs(config, tools)]
    supervisor = Supervisor([replace(one, essential=True, after=()) for one in specs], around, {})
    try:
        supervisor.bring_up()
        yield
    finally:
        supervisor.stop()
        sweep(run_id)


def write_tables(config: Config, scales: list[float]) -> list[tuple[str, str]]:
    """Both suites at every scale, healthy and fragmented; suite and namespace of each."""
    found = []
    lake = open_catalog("lake", config.catalogs["lake"])
    with closing(lake), closing(lake.iceberg()) as iceberg:
        for (suite, make), scale in product((("tpch", "dbgen"), ("tpcds", "dsdgen")), scales):
            with duck.connect(extensions=(suite,)) as made:
                made.execute(f"CALL {make}(sf = {scale})")
                names = [name for (name,) in made.execute("SHOW TABLES").fetchall()]
                for state in ("healthy", "fragmented"):
                    namespace = f"{suite}_{str(scale).replace('.', '_')}_{state}"
                    iceberg.create_namespace_if_not_exists(namespace)
                    for name in names:
                        rows = made.execute(f"FROM {name}").to_arrow_table()
                        _write(iceberg, f"{namespace}.{name}", rows, is_cut=state == "fragmented")
                    found.append((suite, namespace))
    return found


def _write(iceberg: Any, name: str, rows: pa.Table, *, is_cut: bool) -> None:
    is_cut = is_cut and name.rpartition(".")[2] in LARGE
    size = FRAGMENT_BYTES if is_cut else WHOLE_BYTES
    properties = {"write.target-file-size-bytes": str(size)}
    iceberg.create_table(name, schema=rows.schema, properties=properties).append(rows)


def workload(places: list[tuple[str, str]], queries: int, variants: int) -> list[Asked]:
    """The statements, each with other literals every time."""
    texts: dict[str, dict[int, str]] = {}
    for suite in ("tpch", "tpcds"):
        with duck.connect(extensions=(suite,)) as made:
            rows = made.execute(f"SELECT query_nr, query FROM {suite}_queries() ORDER BY 1")  # noqa: S608 ours
            texts[suite] = {number: text.strip().rstrip(";") for number, text in rows.fetchall()}
    found = []
    for suite, namespace in places:
        # Some from all over the suite, so that few are not all of a kind.
        step = max(len(texts[suite]) // queries, 1)
        for number in sorted(texts[suite])[::step][:queries]:
            rng = np.random.default_rng([number, len(suite)])
            for variant in range(variants):
                text = varied(texts[suite][number], rng)
                tree = qualify_tables(portable(text), db=namespace, catalog="lake")
                tables = {table.name for table in tree.find_all(exp.Table) if table.db}
                sql = tree.sql("duckdb")
                found.append(Asked(suite, number, namespace, variant, sql, len(tables)))
    return found


def portable(text: str) -> exp.Expr:
    """As people write who want one answer of all engines; what the translator tells them to do."""
    tree = parse_one(text, read="duckdb")
    for average in list(tree.find_all(exp.Avg)):
        average.set("this", exp.cast(average.this, "DOUBLE"))
    for division in list(tree.find_all(exp.Div)):
        division.set("this", exp.cast(division.this, "DOUBLE"))
    for joined in list(tree.find_all(exp.Concat)):
        parts = iter(joined.expressions)
        whole = next(parts)
        for part in parts:
            whole = exp.DPipe(this=whole, expression=part)
        joined.replace(whole)
    for select in tree.find_all(exp.Select):
        named = {one.alias: one.this for one in select.expressions if isinstance(one, exp.Alias)}
        group = select.args.get("group")
        for column in list(group.find_all(exp.Column)) if group else []:
            if not column.table and column.name in named:
                column.replace(named[column.name].copy())
    return tree


def doubts(asked: Asked) -> list[str]:
    """Why the router would keep a statement from an engine: it might answer something else."""
    found = []
    for engine in ENGINES:
        why = translate(asked.sql, "duckdb", engine).reason
        if why:
            found.append(f"{asked.suite} {asked.number} from {engine}: {why}")
    return found


def run(engine: Engine, dialect: str, asked: Asked) -> tuple[float, list[tuple[str, ...]]]:
    """Seconds, and the rows in an order and form that engines agree on."""
    sql = asked.sql if dialect == "duckdb" else translate(asked.sql, "duckdb", dialect).sql
    began = time.perf_counter()
    rows = engine.execute(Statement(sql=sql, user="bench", source="bench")).rows
    seconds = time.perf_counter() - began
    told = [tuple(_told(value) for value in row.values()) for row in rows.to_pylist()]
    return seconds, sorted(told)


def _told(value: Any) -> str:
    if isinstance(value, float | Decimal) and math.isfinite(value):
        return f"{float(value):.4g}"
    return str(value).strip() if value is not None else ""


@dataclass
class Measured:
    """What was run: seconds by statement and engine, and what did not go well."""

    seconds: Any
    failed: list[str]
    unequal: list[str]
    kept: list[str]


def measure(config: Config, statements: list[Asked], *, is_loud: bool) -> Measured:
    engines = {name: open_engine(EngineId(name), config) for name in ENGINES}
    found = Measured(np.full((len(statements), len(ENGINES)), np.nan), [], [], [])
    for name in ENGINES:  # nobody pays for being the first
        for asked in statements[:3]:
            _tried(engines[name], name, asked)
    for row, asked in enumerate(statements):
        if why := doubts(asked):
            found.kept += why
            continue
        answers = {}
        for column, name in enumerate(ENGINES):
            done = _tried(engines[name], name, asked)
            if isinstance(done, str):
                found.failed.append(f"{asked.suite} {asked.number} on {name}: {done}")
                continue
            found.seconds[row, column], answers[name] = done
        if len({json.dumps(one) for one in answers.values()}) > 1:
            found.unequal.append(f"{asked.suite} {asked.number} ({asked.namespace})")
        if is_loud:
            print(f"{row + 1}/{len(statements)} {asked.namespace} {asked.number}", file=sys.stderr)
    for engine in engines.values():
        engine.close()
    return found


def _tried(engine: Engine, dialect: str, asked: Asked) -> tuple[float, list[Any]] | str:
    try:
        return run(engine, dialect, asked)
    except EngineError as error:
        return str(error).splitlines()[0][:120]


def static(asked: Asked) -> str:
    """A rule set as people write them."""
    if asked.tables >= 4:
        return "spark"
    return "trino" if asked.tables == 3 else "duckdb"


def figures(config: Config, statements: list[Asked], found: Measured, variants: int) -> Any:
    """The table, by money and by time."""
    sizes = np.full(len(statements), np.nan)
    usable = np.isfinite(found.seconds).all(axis=1)
    price = valuations_of(config)["cost"]
    dollars = np.stack(
        [price(name, found.seconds[:, at], sizes) for at, name in enumerate(ENGINES)], axis=1
    )
    chosen = [at for at in range(len(statements)) if usable[at]]
    tested = np.array([statements[at].variant >= variants - max(variants // 3, 1) for at in chosen])
    rules = np.array([ENGINES.index(static(statements[at])) for at in chosen])
    table: dict[str, dict[str, Any]] = {}
    above = {}
    for objective, values in (("cost_usd", dollars), ("seconds", found.seconds)):
        own = Workload(
            query_ids=[str(at) for at in chosen],
            texts=[statements[at].sql for at in chosen],
            dialects=["duckdb"] * len(chosen),
            scan_bytes=sizes[chosen],
            is_test=tested,
            engines=ENGINES,
            values=values[chosen],
        )
        report, choices = evaluate(own)
        part = values[chosen][tested]
        rows = np.arange(len(part))
        picked = {
            **{name: np.full(len(part), at) for at, name in enumerate(ENGINES)},
            "static rules": rules[tested],
            "ours": np.array([ENGINES.index(one.engine) for one in choices]),
            "oracle": part.argmin(axis=1),
        }
        table[objective] = {
            name: {
                "total": float(part[rows, at].sum()),
                "p95": float(np.quantile(part[rows, at], 0.95)),
            }
            for name, at in picked.items()
        }
        above[objective] = report.total["ours"] / report.total["best_single"] - 1
        table[objective]["ours"]["abstained"] = report.abstained_share
    return {
        "statements": len(chosen),
        "routed": int(tested.sum()),
        "table": table,
        "above_best_single": above,
        "failed": sorted(set(found.failed)),
        "unequal": sorted(set(found.unequal)),
        "kept": sorted(set(found.kept)),
        "load_average": os.getloadavg()[0],
        "is_within_limits": all(one <= MOST_ABOVE for one in above.values()),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scales", default="0.01,0.05", help="of both suites, comma-separated")
    parser.add_argument("--queries", type=int, default=22, help="of each suite")
    parser.add_argument("--variants", type=int, default=6, help="of each query's literals")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    scales = [float(one) for one in given.scales.split(",")]
    if min(scales) < LEAST_SCALE:
        parser.error(f"--scales: DuckDB's TPC-DS generator does not end below {LEAST_SCALE}")
    with tempfile.TemporaryDirectory() as folder:
        config = settings(Path(folder))
        places = write_tables(config, scales)
        statements = workload(places, given.queries, given.variants)
        with servers(config):
            found = measure(config, statements, is_loud=not given.json)
        result = figures(config, statements, found, given.variants)
    if given.json:
        print(json.dumps(result))
        return 0 if result["is_within_limits"] else 1
    for objective, rows in result.pop("table").items():
        print(f"\n{objective:12} {'total':>12} {'p95':>12}")
        for name, one in rows.items():
            print(f"{name:12} {one['total']:12.6g} {one['p95']:12.6g}")
    print(json.dumps(result, indent=2))
    return 0 if result["is_within_limits"] else 1


if __name__ == "__main__":
    sys.exit(main())
