"""TPC-H and TPC-DS on DuckDB, Spark and Trino: what routing brings against engines and rules.

    python benchmarks/tpc_engines.py [--json] [--scales 0.01,0.05] [--queries 22] [--variants 6]
                                     [--keep FOLDER]
    python benchmarks/tpc_engines.py --scales 0.01,0.03 --queries 3 --variants 4   # some minutes

Both suites are written as Iceberg tables at each scale, healthy (whole files) and fragmented (many
small ones). Every statement runs with other literals on each engine, once, after a round that
warms them up; rows must be equal. What the translator doubts is kept from its engine, as the router
does it, and so compared nowhere. Money is the demo's price book. The predictor learns from all but
the last third of the variants and routes the rest. Printed for it: total cost, seconds and p95 of
every engine alone, of a static rule set (four tables and more to Spark, three to Trino, others to
DuckDB), of ours and of the oracle; and for each place (suite, scale, state) the seconds of every
engine and how many of its statements each was fastest for. On one machine one engine may win
nearly everything, so the same timings are also routed at other prices: DuckDB's machine some times
as dear. Limit: ours never more than 2 % above the best single engine, at any of them. --keep FOLDER
leaves what was measured in the shape that `lakehelm route evaluate` reads: anybody can count again.
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
from dataclasses import replace
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
from benchmarks._tpc_figures import ENGINES, Asked, Measured, figures, is_routed, keep, priced
from lakehouse_core import duck
from lakehouse_core.catalog import open_catalog
from lakehouse_core.config.environment import read_machine
from lakehouse_core.domain.errors import EngineError
from lakehouse_core.domain.query import EngineId
from lakehouse_core.engines.base import Statement
from lakehouse_core.engines.registry import open_engine
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
LEAST_SCALE = 0.01
FRAGMENT_BYTES, WHOLE_BYTES = 64 * 1024, 512 * 2**20
LARGE = {"lineitem", "orders", "partsupp", "store_sales", "catalog_sales", "web_sales", "inventory"}
PORTS = ("ENGINES__SPARK__PORT", "ENGINES__SPARK__UI_PORT", "ENGINES__TRINO__PORT",
         "GATEWAY__ADMIN_PORT", "GATEWAY__SQL__PORT", "GATEWAY__SQL__POSTGRES_PORT")  # fmt: skip


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
    sql = translate(asked.sql, "duckdb", dialect).sql
    began = time.perf_counter()
    rows = engine.execute(Statement(sql=sql, user="bench", source="bench")).rows
    seconds = time.perf_counter() - began
    told = [tuple(_told(value) for value in row.values()) for row in rows.to_pylist()]
    return seconds, sorted(told)


def _told(value: Any) -> str:
    if isinstance(value, Decimal) and value.as_tuple().exponent == 0:
        value = int(value)  # DuckDB's sums of whole numbers
    if isinstance(value, float | Decimal) and math.isfinite(value):
        return f"{float(value):.4g}"
    return str(value).strip() if value is not None else ""


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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scales", default="0.01,0.05", help="of both suites, comma-separated")
    parser.add_argument("--queries", type=int, default=22, help="of each suite")
    parser.add_argument("--variants", type=int, default=6, help="of each query's literals")
    parser.add_argument("--keep", type=Path, help="folder for what was measured, as Parquet")
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
    parts = np.array([is_routed(one, given.variants) for one in statements])
    dollars = priced(config, found.seconds)
    if given.keep:
        keep(given.keep, statements, found, dollars, parts)
    result = figures(statements, found, dollars, parts)
    if given.json:
        print(json.dumps(result))
        return 0 if result["is_within_limits"] else 1
    for objective, rows in result.pop("table").items():
        print(f"\n{objective:12} {'total':>12} {'p95':>12}")
        for name, one in rows.items():
            print(f"{name:12} {one['total']:12.6g} {one['p95']:12.6g}")
    print(f"\n{'DuckDB times':12} {'best single':>12} {'ours':>12} {'oracle':>12}")
    for times, one in result.pop("duckdb_times_as_dear").items():
        totals = " ".join(
            f"{one['total'][name]:12.6g}" for name in ("best_single", "ours", "oracle")
        )
        print(f"{times:12} {totals} {one['best_single_engine']}")
    print(json.dumps(result, indent=2))
    return 0 if result["is_within_limits"] else 1


if __name__ == "__main__":
    sys.exit(main())
