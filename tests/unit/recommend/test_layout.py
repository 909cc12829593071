"""From evidence to a proposal, its parts, and the proof of what it brought; no JVM."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.transforms import IdentityTransform

from agents import recommend
from lakehouse_core.config.environment import read_machine
from lakehouse_core.domain.errors import FilterError
from lakehouse_core.domain.layout import Layout
from lakehouse_core.domain.maintenance import Kind, State
from lakehouse_core.layout.planned import LakeFiles
from lakehouse_core.layout.sample import Sample
from lakehouse_core.layout.usable import Columns
from lakehouse_core.maintenance.records import actions_of
from lakehouse_core.maintenance.verify import ACTION, STAGE, parts_left
from lakehouse_core.recommend import layout_sample
from lakehouse_core.recommend.layout_advisor import LayoutAdvisor
from lakehouse_core.recommend.layout_proposals import keep_advice
from lakehouse_core.runtime.jobs import JobEnd
from lakehouse_core.store.owner import OwnerStore
from lakehouse_core.views.layout import show_layout
from tests.unit.layout.asked import ask
from tests.unit.maintenance.yard import Yard

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyiceberg.table import Table

    from lakehouse_core.catalog.measure import Reading
    from tests.conftest import DemoConfig

pytestmark = pytest.mark.slow
TARGET = 32 * 2**10
FILES = 4


@pytest.fixture
def yard(load_demo_config: DemoConfig, tmp_path: Path) -> Iterator[Yard]:
    config = load_demo_config(tmp_path / "home")
    upkeep = config.maintenance.model_copy(
        update={"target_file_bytes": TARGET, "quiet_period": config.maintenance.quiet_period * 0}
    )
    layout = config.layout.model_copy(update={"least_file_bytes": TARGET})
    dear = {"engine": "trino", "unit": "tb_scanned", "list_price": "5000"}
    prices = type(config.prices).model_validate({"book": {"dear": dear}})
    prices.know({name: one.type for name, one in config.engines.items()})
    changes = {"maintenance": upkeep, "layout": layout, "prices": prices}
    config = config.model_copy(update=changes)
    with OwnerStore.open(config.store) as store:
        made = Yard(config, store)
        yield made
        made.maintainer.close()


def filled(yard: Yard, seed: int = 3) -> str:
    table_id = yard.create(files=0)
    rng = np.random.default_rng(seed)
    for _ in range(FILES):
        yard.change(table_id, lambda table: _append(table, rng))
    clauses = [f"id = {value}" for value in rng.integers(0, 10**6, 30)]
    ask(yard.store, table_id, "trino", clauses, yard.clock())
    return table_id


def _append(table: Table, rng: np.random.Generator) -> None:
    ids = rng.integers(0, 10**6, 5_000)
    table.append(pa.table({"id": ids, "region": pa.array([f"r{n % 7}" for n in ids.tolist()])}))


def advisor(yard: Yard, files: LakeFiles) -> LayoutAdvisor:
    """Samples by reading everything, as a Spark job does of a small table."""

    def sample(reading: Reading, columns: Columns) -> Sample:
        rows = yard.change(reading.table_id, lambda table: table.scan().to_arrow())
        return Sample(
            rows=rows.rename_columns([name.lower() for name in rows.column_names]),
            types=columns.types,
            truncations=columns.truncations,
            partition=np.zeros(rows.num_rows, np.int64),
            partition_bytes=np.array([float(reading.files.sizes.sum())]),
            table_rows=rows.num_rows,
        )

    return LayoutAdvisor(yard.config, yard.store, files, sample, yard.clock)


def collected(yard: Yard, table_id: str) -> None:
    """The table as the collector would have noted it."""
    from agents.collect import run_once  # noqa: PLC0415 only here
    from collectors.registry import build_source, collect_settings  # noqa: PLC0415 as above

    source = build_source("iceberg", yard.config, yard.store, yard.clock)
    timeout = collect_settings(yard.config, "iceberg").timeout
    assert run_once(source, yard.store, yard.clock, timeout=timeout).error is None, table_id


def proposed(yard: Yard) -> list[Any]:
    recommend.run_once(yard.store, yard.config, yard.clock)
    rows = yard.store.read("SELECT * FROM action WHERE state = 'proposed'")
    return [one for one in actions_of(rows) if one.kind is Kind.SORT]


def test_advice_becomes_one_proposal_that_stands_and_its_rewrite_is_proven(yard: Yard) -> None:
    table_id = filled(yard)
    collected(yard, table_id)
    files = LakeFiles(yard.config)
    try:
        found = advisor(yard, files).advise(table_id)
        assert str(found.advice.layout) == "id", found.advice.reason
        keep_advice(yard.store, found)
    finally:
        files.close()
    (first,) = proposed(yard)
    assert {one.name for one in first.predicted} >= {"scan_bytes", "scan_files", "data_files"}
    saving = next(one for one in first.predicted if one.name == "saving_usd_month")
    assert saving.low < saving.after < saving.high
    assert first.plan.stages[0].procedure == "set_sort_order"
    assert first.evidence[0].engine_id == "trino"
    assert proposed(yard) == [first]
    moved = yard.ledger.move(
        first, State.APPROVED, by="ana", decided_by="ana", decided_at=yard.clock()
    )
    yard.maintainer.run_once()
    done = yard.now(moved)
    assert done.state is State.VERIFIED, done.explanation
    realised = {one.name: one for one in done.realised}
    # The stand-in puts all rows into one file: every query reads all of it.
    assert realised["scan_files"].before == pytest.approx(FILES, rel=0.2)
    assert realised["scan_files"].after == 1
    seen = show_layout(yard.store, table_id)
    assert [one.engine_id for one in seen.proof] == ["trino"]
    assert seen.proof[0].bytes_predicted is not None
    assert seen.layout == "id"
    assert proposed(yard) == []  # advice from before the rewrite does not count


def test_layout_that_appends_have_undone_comes_back_when_newer_advice_says_so(yard: Yard) -> None:
    table_id = filled(yard)
    collected(yard, table_id)
    advised(yard, table_id)
    (first,) = proposed(yard)
    moved = yard.ledger.move(
        first, State.APPROVED, by="ana", decided_by="ana", decided_at=yard.clock()
    )
    yard.maintainer.run_once()
    assert yard.now(moved).state is State.VERIFIED
    yard.clock.turn(hours=2)
    collected(yard, table_id)
    # The stand-in sorts nothing, so the advice stays; its readers have lost nothing since.
    assert str(advised(yard, table_id)) == "id"
    assert proposed(yard) == []
    rng = np.random.default_rng(8)
    for _ in range(FILES):
        yard.change(table_id, lambda table: _append(table, rng))
    yard.clock.turn(hours=2)
    collected(yard, table_id)
    assert proposed(yard) == []  # nobody looked since
    advised(yard, table_id)
    (again,) = proposed(yard)
    assert again.dedupe_key == first.dedupe_key
    assert again.action_id != first.action_id


def advised(yard: Yard, table_id: str) -> Layout | None:
    """Look, and keep what is advised."""
    files = LakeFiles(yard.config)
    try:
        found = advisor(yard, files).advise(table_id)
    finally:
        files.close()
    keep_advice(yard.store, found)
    return found.advice.layout


def test_no_sample_is_taken_where_evidence_is_missing(yard: Yard) -> None:
    table_id = yard.create(files=2)
    files = LakeFiles(yard.config)

    def sample(_reading: Reading, _columns: Columns) -> Sample:
        raise AssertionError("a sample costs minutes")

    looks = LayoutAdvisor(yard.config, yard.store, files, sample, yard.clock)
    try:
        assert "No query" in looks.advise(table_id).advice.reason
        assert "No query" in looks.simulate(table_id, "id").advice.reason
        ask(yard.store, table_id, "trino", ["id = 5"], yard.clock())
        assert "1 runs" in looks.advise(table_id).advice.reason
        empty = yard.create(files=0)
        ask(yard.store, empty, "trino", [f"id = {n}" for n in range(30)], yard.clock())
        assert "empty" in looks.advise(empty).advice.reason
        assert "empty" in looks.simulate(empty, "id").advice.reason
    finally:
        files.close()


def test_sample_is_of_the_snapshot_it_is_kept_for(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts_id = in_parts(yard)
    files = LakeFiles(yard.config)
    reading = files.read(parts_id, files.metadata(parts_id))
    paths = files.partitions(reading).of_file
    plans = []

    def job(_config: Any, _machine: Any, _job: Any, plan: dict[str, Any]) -> JobEnd:
        plans.append(plan)
        names = [*paths, "file:/another/snapshot.parquet"]
        rows = {"id": range(len(names)), "region": ["r"] * len(names), "_file": names}
        Path(plan["output"]).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({name: list(one) for name, one in rows.items()}), plan["output"])
        return JobEnd(exit_code=0)

    monkeypatch.setattr(layout_sample, "run_spark_job", job)
    try:
        sampler = layout_sample.Sampler(yard.config, read_machine(), files)
        found = sampler.sample(reading, Columns.of(reading.metadata))
    finally:
        files.close()
    assert reading.metadata.current is not None
    assert [one["snapshot_id"] for one in plans] == [reading.metadata.current.snapshot_id]
    assert found.rows.num_rows == len(paths)
    assert sorted(found.partition.tolist()) == sorted(paths.values())
    assert found.telling is not None
    assert "region" in found.telling.axes


def test_proof_stands_beside_the_prediction_that_the_proposal_was_made_anew_from(
    yard: Yard,
) -> None:
    table_id = filled(yard)
    collected(yard, table_id)
    files = LakeFiles(yard.config)
    try:
        found = advisor(yard, files).advise(table_id)
    finally:
        files.close()
    keep_advice(yard.store, found)
    (first,) = proposed(yard)
    assert found.advice.prediction is not None
    yard.clock.turn(hours=1)
    figures = replace(found.advice.prediction, bytes_now=3 * found.advice.prediction.bytes_now)
    rows = tuple(replace(one, bytes_then=12_345.0) for one in found.advice.rows)
    later = replace(found.advice, prediction=figures, rows=rows)
    keep_advice(yard.store, replace(found, advice=later, advised_at=yard.clock()))
    (renewed,) = proposed(yard)
    assert renewed.action_id == first.action_id
    assert renewed.predicted != first.predicted
    moved = yard.ledger.move(
        renewed, State.APPROVED, by="ana", decided_by="ana", decided_at=yard.clock()
    )
    yard.maintainer.run_once()
    assert yard.now(moved).state is State.VERIFIED
    seen = show_layout(yard.store, table_id)
    assert [one.bytes_predicted for one in seen.proof] == [12_345.0]


def test_advice_for_columns_in_mixed_case_is_held(yard: Yard) -> None:
    rng = np.random.default_rng(5)
    with yard._catalog() as catalog:
        catalog.create_namespace("mixed")
        schema = pa.schema([("Id", pa.int64()), ("Amount", pa.int64())])
        table = catalog.create_table("mixed.t", schema=schema)
        for _ in range(FILES):
            numbers = rng.integers(0, 10**6, (2, 5_000))
            table.append(pa.table({"Id": numbers[0], "Amount": numbers[1]}))
    table_id = "lake.mixed.t"
    asked = [f"Id = {value}" for value in rng.integers(0, 10**6, 30)]
    asked += [f"Amount = {value}" for value in rng.integers(0, 10**6, 30)]
    ask(yard.store, table_id, "trino", asked, yard.clock())
    files = LakeFiles(yard.config)
    try:
        first = advisor(yard, files).advise(table_id)
        assert first.advice.layout is not None, first.advice.reason
        other = Layout(first.advice.layout.kind, first.advice.layout.columns[::-1])
        kept = keep_advice(yard.store, replace(first, advice=replace(first.advice, layout=other)))
        assert "Amount" in str(kept.layout)
        held = advisor(yard, files).advise(table_id)
    finally:
        files.close()
    assert held.advice.layout == other


def test_table_nobody_looked_at_says_so(yard: Yard) -> None:
    table_id = filled(yard)
    collected(yard, table_id)
    seen = show_layout(yard.store, table_id)
    assert seen.reason is None
    assert seen.candidates == ()


def test_order_of_unknown_columns_is_refused_by_name(yard: Yard) -> None:
    table_id = filled(yard)
    files = LakeFiles(yard.config)
    try:
        with pytest.raises(FilterError, match="nowhere"):
            advisor(yard, files).simulate(table_id, "zorder(id, nowhere)")
        tried = advisor(yard, files).simulate(table_id, "ID, region")
    finally:
        files.close()
    assert str(tried.advice.layout) == "id, region"


def in_parts(yard: Yard) -> str:
    """A table in partitions by region."""
    table_id = yard.create(files=0)
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "region"))
    with yard._catalog() as catalog:
        table = catalog.load_table(table_id.removeprefix("lake."))
        other = f"{table.name()[0]}.parts"
        catalog.create_table(other, table.schema(), partition_spec=spec)
    parts_id = f"lake.{other}"
    rng = np.random.default_rng(1)
    yard.change(parts_id, lambda table: _append(table, rng))
    return parts_id


def test_partitioned_table_is_rewritten_in_parts_that_stay_done(yard: Yard) -> None:
    parts_id = in_parts(yard)
    files = LakeFiles(yard.config)
    try:
        reading = files.read(parts_id, files.metadata(parts_id))
        size = int(reading.files.sizes.sum())
        batches = files.batches(reading, size // 3)
        assert files.batches(reading, size) == []
    finally:
        files.close()
    regions = [one["region"] for batch in batches for one in batch]
    assert sorted(regions) == [f"r{n}" for n in range(7)]
    given = {"columns": ["id"], "batches": batches}
    action = yard.propose(parts_id, Kind.SORT, parameters=given)
    rewrites = action.plan.stages[1:]
    assert [one.arguments["partitions"] for one in rewrites] == batches
    assert "of partitions" in rewrites[0].call
    metadata = yard.metadata(parts_id)
    assert metadata.current is not None
    assert parts_left(action, metadata) == len(batches)
    summary = {ACTION: action.action_id, STAGE: "1"}
    done = replace(metadata.current, summary=summary)
    after = replace(metadata, snapshots=(done,), current=done)
    assert parts_left(action, after) == len(batches) - 1
