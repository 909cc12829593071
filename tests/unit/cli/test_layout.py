"""`lakehelm layout advise|simulate` on a real table and a served store; the sample is given."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse_core.config import load_config
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.recommend import layout_sample
from lakehouse_core.runtime.jobs import JobEnd
from lakehouse_core.store.rows import to_arrow
from tests.e2e.owner import open_owner, write_tokens
from tests.factories import free_port_pair, lake_table
from tests.unit.layout.asked import ask
from tests.unit.maintenance.yard import Yard

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.unit.cli.conftest import Run

pytestmark = pytest.mark.slow
FILES, ROWS = 4, 5_000


@pytest.fixture
def table_id(good_config: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A table in files of random ids, thirty queries for one id each, and a job that samples it."""
    small = 32 * 2**10
    monkeypatch.setenv("LAKEHELM__STORE__PORT", str(free_port_pair()))
    monkeypatch.setenv("LAKEHELM__HOME", "home")
    monkeypatch.setenv("LAKEHELM__MAINTENANCE__TARGET_FILE_BYTES", str(small))
    monkeypatch.setenv("LAKEHELM__LAYOUT__LEAST_FILE_BYTES", str(small))
    monkeypatch.setenv("LAKEHELM_CONFIG", good_config)
    config = load_config(Path(good_config), dict(os.environ)).config
    write_tokens(config)
    rng = np.random.default_rng(3)
    with open_owner(config) as owner:
        yard = Yard(config, owner)
        made = yard.create(files=0)
        for _ in range(FILES):
            ids = rng.integers(0, 10**6, ROWS)
            rows = pa.table({"id": ids, "region": pa.array(["r"] * ROWS)})
            yard.change(made, lambda table, rows=rows: table.append(rows))
        owner.upsert("lake_table", to_arrow("lake_table", [lake_table(table_id=made)]))
        ask(owner, made, "duckdb", [f"id = {one}" for one in rng.integers(0, 10**6, 30)], utc_now())

        def job(_config: Any, _machine: Any, _job: Any, plan: dict[str, Any]) -> JobEnd:
            target = Path(plan["output"])
            target.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(yard.change(plan["table"], lambda t: t.scan().to_arrow()), target)
            return JobEnd(exit_code=0)

        monkeypatch.setattr(layout_sample, "run_spark_job", job)
        yield made
        yard.maintainer.close()


def test_advice_is_printed_and_kept(run: Run, table_id: str, good_config: str) -> None:
    tried = run("layout", "advise", table_id, "--dry-run", "--json", "--config", good_config)
    assert tried.code == 0, tried.err
    assert tried.data["advice_id"] is None
    assert run("layout", "show", table_id, "--json", "--config", good_config).data["reason"] is None
    found = run("layout", "advise", table_id, "--json", "--config", good_config)
    assert found.data["prediction"]["bytes_then"] < found.data["prediction"]["bytes_now"] / 2
    assert (found.data["runs"], found.data["sample_rows"]) == (30, FILES * ROWS)
    shown = run("layout", "show", table_id, "--json", "--config", good_config)
    assert shown.data["advice_id"] == found.data["advice_id"]


def test_layout_is_simulated_or_refused_by_name(run: Run, table_id: str, good_config: str) -> None:
    config = ("--config", good_config)
    tried = run("layout", "simulate", table_id, "--order", "id", *config)
    assert tried.code == 0, tried.err
    assert "Under id, reading costs" in tried.out
    wrong = run("layout", "simulate", table_id, "--order", "zorder(id, nowhere)", *config)
    assert wrong.code == 2
    assert "nowhere" in wrong.err
