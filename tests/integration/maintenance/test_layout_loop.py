"""The layout loop on real Spark: two engines filter differently; advised, done and proven."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from lakehouse_core.config.environment import read_machine
from lakehouse_core.domain.maintenance import State
from lakehouse_core.domain.query import EngineId
from lakehouse_core.layout.planned import LakeFiles
from lakehouse_core.recommend.layout_advisor import LayoutAdvisor
from lakehouse_core.recommend.layout_proposals import keep_advice
from lakehouse_core.recommend.layout_sample import Sampler
from lakehouse_core.sql.inspector import Inspector
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.views.layout import show_layout
from lakehouse_core.views.maintenance import show_maintenance
from tests.factories import query_event

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from tests.integration.maintenance.world import World

pytestmark = pytest.mark.spark
ROWS, APPENDS, TARGET = 60_000, 6, 96 * 2**10


def test_layout_that_serves_two_engines_is_advised_done_and_proven(world: World) -> None:
    table_id = world.create(files=0)
    rng = np.random.default_rng(7)
    for _ in range(APPENDS):
        world.change(table_id, lambda table: _append(table, rng))
    settings = world.config.layout.model_copy(update={"least_file_bytes": TARGET})
    upkeep = world.config.maintenance.model_copy(update={"target_file_bytes": TARGET})
    # Both engines at one price: at twice the other's, one's key alone would do nearly as well.
    book = world.config.prices.book
    other = book["trino"].model_copy(update={"engine": "duckdb"})
    prices = world.config.prices.model_copy(update={"book": {**book, "duckdb": other}})
    changed = {"layout": settings, "maintenance": upkeep, "prices": prices}
    world.config = world.config.model_copy(update=changed)
    world.maintainer = world.new_maintainer()
    _queries(world, table_id, rng)
    world.collect()

    files = LakeFiles(world.config)
    try:
        sampler = Sampler(world.config, read_machine(), files)
        advisor = LayoutAdvisor(world.config, world.store, files, sampler.sample, world.clock)
        advised = advisor.advise(table_id)
    finally:
        files.close()
    layout = advised.advice.layout
    assert layout is not None, advised.advice.reason
    assert set(layout.all_columns) == {"id", "region"}
    assert advised.advice.sample_rows == ROWS
    assert any("wrapped in UPPER" in one.reason for one in advised.advice.unusable)

    keep_advice(world.store, advised)
    (proposed,) = [one for one in world.recommend() if one.kind is layout.action]
    assert {one.engine_id for one in proposed.evidence} == {"trino", "duckdb"}
    assert world.recommend() == world.recommend()  # it stands as it is
    done = world.decide(proposed)
    world.maintainer.run_once()
    done = world.now(done)
    assert done.state is State.VERIFIED, done.explanation
    assert len(world.rows(table_id)) == ROWS

    figures = {
        one.name: one
        for one in show_maintenance(world.store, world.config.home, done.action_id).figures
    }
    scan = figures["scan_bytes"]
    assert scan.predicted is not None
    assert scan.realised is not None
    assert scan.before is not None
    assert scan.realised < scan.before / 2
    assert scan.predicted == pytest.approx(scan.realised, rel=0.4)  # files of some kilobytes
    seen = show_layout(world.store, table_id)
    assert {one.engine_id for one in seen.proof} == {"trino", "duckdb"}
    assert all(one.bytes_after < one.bytes_before for one in seen.proof if one.bytes_predicted)
    world.collect()
    assert [one for one in world.recommend() if one.kind is layout.action] == []


def _append(table: Table, rng: np.random.Generator) -> None:
    count = ROWS // APPENDS
    regions = np.array([f"r-{n:05}" for n in range(5_000)])
    columns = {"id": rng.integers(0, 10**6, count), "region": rng.choice(regions, count)}
    table.append(pa.table({"id": columns["id"], "region": pa.array(columns["region"].tolist())}))


def _queries(world: World, table_id: str, rng: np.random.Generator) -> None:
    inspector = Inspector()
    asked: dict[str, Any] = {
        "trino": lambda: f"id = {rng.integers(0, 10**6)}",
        "duckdb": lambda: f"region = 'r-{rng.integers(0, 5_000):05}' AND upper(region) <> 'X'",
    }
    events, templates, usage = [], {}, {}
    for engine, clause in asked.items():
        for number in range(60):
            sql = f"SELECT count(*) FROM {table_id} WHERE {clause()}"  # noqa: S608 ours
            template = inspector.fingerprint(sql, engine).template_id
            templates[template] = {
                "template_id": template,
                "dialect": engine,
                "template": sql,
                "statement_kind": "select",
                "seen_at": world.clock(),
            }
            usage[template] = {
                "template_id": template,
                "table_name": table_id,
                "column_name": "id",
                "role": "filter_eq",
            }
            events.append(
                query_event(
                    engine_id=EngineId(engine),
                    query_id=f"{engine}-{number}",
                    dialect=engine,
                    sql_text=sql,
                    template_id=template,
                    submitted_at=world.clock() - timedelta(minutes=number + 1),
                    bytes_scanned=400_000,
                    cpu_ms=40_000.0,
                )
            )
    world.store.upsert("query_event", to_arrow("query_event", events))
    rows = [one | {"parse_error": None, "parse_reason": None} for one in templates.values()]
    schema = pa.schema(
        [(name, pa.string()) for name in ("template_id", "dialect", "template", "statement_kind")]
        + [
            ("parse_error", pa.string()),
            ("seen_at", pa.timestamp("us", "UTC")),
            ("parse_reason", pa.string()),
        ]
    )
    world.store.upsert("query_template", pa.Table.from_pylist(rows, schema))
    world.store.upsert("column_usage", pa.Table.from_pylist(list(usage.values())))
