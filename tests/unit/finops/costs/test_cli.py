"""`lakehelm cost …` on a served store: it adds up, bills come in, prices tell their sources."""

from __future__ import annotations

import json
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from agents import finops
from agents.watch import Lease
from lakehouse_core.cli import main
from lakehouse_core.config import load_config
from lakehouse_core.domain.clock import utc_now
from tests.ui.conftest import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from lakehouse_core.store.owner import OwnerStore

    Run = Callable[..., tuple[int, Any]]

pytestmark = pytest.mark.duckdb  # the store is served over Quack


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Place:
    return Place.below(tmp_path_factory.mktemp("home"), repository)


@pytest.fixture(scope="module")
def owner(place: Place, repository: Path) -> Iterator[OwnerStore]:
    config = load_config(repository / "config" / "lakehelm.yaml", place.environ).config
    with place.served(filled=True) as opened:
        opened.transact("query_event", ["UPDATE query_event SET origin = 'real'"])
        finops.run_once(opened, config, utc_now, Lease())
        yield opened


@pytest.fixture
def run(
    place: Place,
    owner: OwnerStore,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    del owner
    for name, value in place.environ.items():
        monkeypatch.setenv(name, value)

    def command(*args: str) -> tuple[int, Any]:
        with pytest.raises(SystemExit) as ended:
            main(("cost", *args, "--json"))
        return int(ended.value.code or 0), json.loads(capsys.readouterr().out)

    return command


def test_every_engine_and_hour_of_a_history_adds_up(owner: OwnerStore, run: Run) -> None:
    code, found = run("reconcile", "--window", "30d")
    assert code == 0
    assert {Decimal(hour["difference"]) for hour in found["hours"]} == {Decimal(0)}
    assert {one["engine_id"] for one in found["totals"]} >= {"trino", "spark", "duckdb"}
    assert all(Decimal(one["metered"]) > 0 for one in found["totals"])
    told = owner.read("SELECT count(*) AS n FROM query_event").to_pylist()[0]["n"]
    assert sum(hour["queries"] for hour in found["hours"]) == told


def test_an_hour_that_does_not_add_up_is_a_failure(owner: OwnerStore, run: Run) -> None:
    change = "UPDATE cost_hour SET cost = cost {} 0.000000001 WHERE kind = 'idle'"
    owner.transact("cost_hour", [change.format("+")])
    code, found = run("reconcile", "--window", "30d", "--engine", "trino")
    owner.transact("cost_hour", [change.format("-")])
    assert code == 1
    assert {one["engine_id"] for one in found["totals"]} == {"trino"}
    assert Decimal(found["totals"][0]["difference"]) < 0


def test_a_bill_is_imported_and_what_it_lacks_is_told(run: Run, tmp_path: Path) -> None:
    start = (utc_now() - timedelta(hours=30)).replace(minute=0, second=0, microsecond=0)
    end = start + timedelta(hours=1)
    bill = tmp_path / "bill.csv"
    bill.write_text(
        "engine,start,end,cost,currency\n"
        f"trino,{start.isoformat()},{end.isoformat()},7.5,USD\n"
        f"trino,{start.isoformat()},{end.isoformat()},,USD\n"
    )
    code, report = run("import", str(bill))
    assert (code, report["new"], report["refused_lines"]) == (4, 1, 1)
    _, found = run("reconcile", "--window", "7d", "--engine", "trino")
    billed = [one for one in found["hours"] if "billed" in one["basis"]]
    assert [Decimal(one["metered"]) for one in billed] == [Decimal("7.5")]
    assert [Decimal(one["difference"]) for one in billed] == [Decimal(0)]


def test_prices_tell_source_day_and_whom_they_count_for(run: Run) -> None:
    _, prices = run("prices")
    by_name = {one["name"]: one for one in prices}
    assert by_name["public-athena"]["effective_rate"] == "5"
    assert by_name["trino"]["counts_for"] == ["trino"]
    assert by_name["trino"]["note"] is None
    assert by_name["public-s3-get"]["note"].startswith("not measured")
    assert all(one["source"] and one["source_on"] for one in prices)
