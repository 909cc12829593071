"""The layout of a table, in the browser and on the command line: advice, what was tried, proof."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from lakehouse_core.cli import main
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.layout import LayoutAdvice, LayoutProof
from lakehouse_core.domain.maintenance import Kind, State
from lakehouse_core.layout.advise import advise
from lakehouse_core.layout.workload import to_json
from lakehouse_core.recommend.layout_proposals import layout_key
from lakehouse_core.store.rows import to_arrow
from tests.factories import action
from tests.ui.conftest import Place, Visitor, words
from tests.unit.layout.lake import setting, workload
from tests.unit.layout.test_advise import as_written, keys, table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakehouse_core.store.owner import OwnerStore

pytestmark = pytest.mark.ui
TABLE = "lake.demo.events"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Iterator[Place]:
    made = Place.below(tmp_path_factory.mktemp("layout"), repository)
    with made.served(filled=True) as owner:
        _advised(owner)
        _proven(owner)
        yield made


def _advised(owner: OwnerStore) -> None:
    asked = workload(("trino", 100, keys("a")), ("duckdb", 100, keys("b", 3)))
    sample = table()
    found = advise(sample, as_written(sample, asked.conditions), asked, setting())
    row = LayoutAdvice(
        advice_id="l1",
        table_id=TABLE,
        advised_at=utc_now(),
        snapshot_id=1,
        layout=str(found.layout),
        reason=found.reason,
        target_bytes=found.target_bytes,
        advice=json.dumps(asdict(found) | {"batches": [], "unread_runs": 17}, default=str),
        workload=to_json(asked),
    )
    owner.upsert("layout_advice", to_arrow("layout_advice", [row]))
    used = {"column_name": "a", "role": "filter_eq", "engine_id": "trino", "runs": 100}
    day = {"day": utc_now().date(), "table_name": TABLE}
    owner.upsert("usage_day", pa.Table.from_pylist([day | used]))
    wanted = action(
        action_id="a-wanted",
        kind=Kind.HILBERT,
        table_id=TABLE,
        dedupe_key=layout_key(TABLE, str(found.layout)),
    )
    owner.upsert("action", to_arrow("action", [wanted]))


def _proven(owner: OwnerStore) -> None:
    done = action(
        action_id="a-proven",
        kind=Kind.HILBERT,
        table_id=TABLE,
        state=State.VERIFIED,
        title="Arrange rows by hilbert(a, b)",
        ended_at=utc_now(),
    )
    owner.upsert("action", to_arrow("action", [done]))
    rows = [
        LayoutProof(
            action_id="a-proven",
            template_id=f"t{number}",
            engine_id=engine,
            proven_at=utc_now(),
            runs=10,
            bytes_before=1e9,
            files_before=40.0,
            bytes_predicted=1.1e8,
            files_predicted=4.0,
            bytes_after=1e8,
            files_after=4.0,
        )
        for number, engine in enumerate(("trino", "duckdb"))
    ]
    owner.upsert("layout_proof", to_arrow("layout_proof", rows))


def test_tab_shows_advice_and_proof(visitor: Visitor, place: Place) -> None:
    app = visitor.at(place, "tables", table=TABLE)
    assert not app.exception
    text = words(app)
    assert "hilbert" in text
    assert "saves" in text
    assert "What did it bring?" in text
    shown = [set(frame.value.columns) for frame in app.dataframe]
    assert any({"before", "predicted", "after"} <= columns for columns in shown)
    assert any("overlap" in columns for columns in shown)
    assert any({"seen_before", "seen"} <= columns for columns in shown)
    assert "17 runs are not counted" in text
    assert any({"column", "engine", "role"} <= columns for columns in shown)


def test_tab_of_a_table_nobody_looked_at_says_how_to_ask(visitor: Visitor, place: Place) -> None:
    app = visitor.at(place, "tables", table="lake.demo.orders_cdc")
    assert not app.exception
    assert "lakehelm layout advise" in " ".join(one.value for one in app.code)


def test_command_shows_the_same_as_json(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in place.environ.items():
        monkeypatch.setenv(name, value)

    def run(*args: str) -> tuple[int, dict[str, Any]]:
        with pytest.raises(SystemExit) as ended:
            main(args)
        out = capsys.readouterr().out
        return int(ended.value.code or 0), json.loads(out) if out.startswith("{") else {}

    code, seen = run("layout", "show", "demo.events", "--json")
    assert code == 0
    assert seen["layout"] == "hilbert(a, b)"
    assert (seen["proposal_id"], seen["proposal_state"]) == ("a-wanted", "proposed")
    assert seen["unread_runs"] == 17
    assert {one["engine_id"] for one in seen["proof"]} == {"trino", "duckdb"}
    assert seen["proof"][0]["bytes_after"] < seen["proof"][0]["bytes_before"]
    assert np.isclose(seen["rows"][0]["runs"], 100)
    code, _ = run("layout", "show", "demo.nowhere", "--json")
    assert code == 1
