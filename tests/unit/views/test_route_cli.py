"""`lakehelm route compare|regret|estimates|replay` on a store that is served."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from lakehouse_core.domain.clock import utc_now
from tests.commands import command_line, reading
from tests.ui.conftest import Place
from tests.unit.views.past import cost, ran

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.duckdb  # the store is served over Quack


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Iterator[Place]:
    """A template that duckdb answers for a quarter of trino's money and time."""
    found = Place.below(tmp_path_factory.mktemp("home"), repository)
    now = utc_now()
    with found.served(filled=False) as owner:
        told = {"until": now, "estimated_bytes": 800}
        ran(owner, "t1", "trino", [4.0] * 10, bytes_scanned=200, **told)
        ran(owner, "t1", "duckdb", [1.0] * 10, bytes_scanned=900, **told)
        cost(owner, {("t1", "trino"): "0.4", ("t1", "duckdb"): "0.1"}, until=now)
        yield found


@pytest.fixture
def run(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    return command_line(place.environ, monkeypatch, capsys)


@pytest.fixture
def read(run: Callable[..., tuple[int, str, str]]) -> Callable[..., Any]:
    return reading(run)


def test_compare_names_the_winner_and_money_is_text(read: Callable[..., Any]) -> None:
    (contest,) = read("route", "compare")["contests"]
    assert (contest["template_id"], contest["winner"]) == ("t1", "duckdb")
    costs = {one["engine_id"]: one["cost_per_run"] for one in contest["engines"]}
    assert {name: Decimal(each) for name, each in costs.items()} == {
        "trino": Decimal("0.4"),
        "duckdb": Decimal("0.1"),
    }
    assert all(isinstance(each, str) for each in costs.values())


def test_estimates_are_held_against_what_was_read(
    read: Callable[..., Any], run: Callable[..., tuple[int, str, str]]
) -> None:
    duckdb, trino = read("route", "estimates")["engines"]
    assert (trino["engine_id"], trino["compared"], trino["too_low"]) == ("trino", 10, 0)
    assert (trino["estimated_bytes"], trino["read_bytes"]) == (8_000, 2_000)
    assert trino["p50_ratio"] == 0.25
    assert (duckdb["engine_id"], duckdb["too_low"]) == ("duckdb", 10)
    code, shown, _ = run("route", "estimates", "--window", "24h")
    assert code == 0
    assert "trino" in shown


def test_regret_is_told_against_engine_oracle_and_rules(read: Callable[..., Any]) -> None:
    found = read("route", "regret", "--window", "24h")
    money = {one["name"]: one for one in found["cost"]["baselines"]}
    assert set(money) == {"best_single", "oracle", "rules"}
    assert Decimal(found["cost"]["actual"]) == Decimal(5)
    assert isinstance(money["oracle"]["regret"], str)
    assert Decimal(money["oracle"]["regret"]) == Decimal(3)
    assert found["seconds"]["actual"] == pytest.approx(50.0)


def test_replay_says_what_would_move_and_what_it_leaves_out(
    run: Callable[..., tuple[int, str, str]],
    read: Callable[..., Any],
    place: Place,
    tmp_path: Path,
) -> None:
    other = tmp_path / "other.yaml"
    settings = yaml.safe_load(Path(place.environ["LAKEHELM_CONFIG"]).read_text(encoding="utf-8"))
    other.write_text(
        yaml.safe_dump(settings | {"routing": {"routingFallback": "duckdb"}}), encoding="utf-8"
    )
    found = read("route", "replay", "--config", str(other))
    (move,) = found["moves"]
    assert (move["engine"], move["to"], move["runs"]) == ("trino", "duckdb", 10)
    assert [Decimal(found["cost"][when]) for when in ("before", "after")] == [5, 2]
    code, _, said = run("route", "replay", "--config", str(other))
    assert code == 0
    assert "10 of 20 runs would go elsewhere" in said
    assert "Strategies by prediction" in said
