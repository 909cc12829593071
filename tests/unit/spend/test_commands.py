"""`lakehelm cost …` and `lakehelm export …` on a served store with hours charged for real."""

from __future__ import annotations

import csv
import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from tests.commands import Home, command_line, reading
from tests.ui.conftest import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


pytestmark = pytest.mark.duckdb  # the store is served over Quack
WINDOW = ("--window", "30d")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Iterator[Home]:
    place = Place.below(tmp_path_factory.mktemp("home"), repository)
    with place.served(filled=True) as owner:
        yield Home(place, owner)


@pytest.fixture
def run(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    return command_line(home.place.environ, monkeypatch, capsys)


@pytest.fixture
def read(run: Callable[..., tuple[int, str, str]]) -> Callable[..., Any]:
    return reading(run)


def test_report_export_and_store_have_one_total(
    home: Home, read: Callable[..., Any], tmp_path: Path
) -> None:
    metered = home.owner.read("SELECT sum(cost) AS cost FROM charge").column("cost")[0].as_py()
    assert metered > 0
    report = read("cost", "report", "--by", "engine,workload", *WINDOW)
    assert Decimal(report["total"]["cost"]) == metered
    assert sum(Decimal(row["cost"]) for row in report["rows"]) == metered
    assert Decimal(report["reconciliation"]["difference"]) == 0
    focus = read("export", "focus", "--out", str(tmp_path / "focus.parquet"), *WINDOW)
    assert focus["ok"]
    assert Decimal(focus["check"]["totals"][0]["EffectiveCost"]) == metered
    read("export", "csv", "--out", str(tmp_path / "costs.csv"), "--by", "team,user", *WINDOW)
    with (tmp_path / "costs.csv").open(encoding="utf-8", newline="") as file:
        assert sum(Decimal(row["cost"]) for row in csv.DictReader(file)) == metered
    hours = read("cost", "reconcile", *WINDOW)
    assert sum(Decimal(one["metered"]) for one in hours["totals"]) == metered


def test_a_broken_copy_fails_the_check_with_row_and_rule(
    read: Callable[..., Any], run: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    path = tmp_path / "focus.csv"
    read("export", "focus", "--out", str(path), "--focus", "1.2", *WINDOW)
    read("export", "check", str(path))
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[3] = lines[3].replace("USD", "dollars", 1)
    path.write_text("\n".join(lines), encoding="utf-8")
    code, out, _ = run("export", "check", str(path), "--json")
    assert code == 1
    found = json.loads(out)["violations"]
    assert [(one["rule"], one["row"], one["column"]) for one in found][:1] == [
        ("currency", 3, "BillingCurrency")
    ]


def test_groups_of_the_configuration_are_applied_and_previewed(
    read: Callable[..., Any], tmp_path: Path
) -> None:
    rules = read("cost", "groups", *WINDOW)
    assert rules["rules"][-1]["workload"] == "other"
    file = tmp_path / "rules.yaml"
    file.write_text("- {name: people, when: {user: [ana, bo]}}", encoding="utf-8")
    found = read("cost", "groups", "--preview", str(file), *WINDOW)
    assert Decimal(found["moved"]) > 0
    assert {move["after"] for move in found["moves"]} == {"people", "other"}


@pytest.mark.parametrize(
    "command",
    [
        ("cost", "queries"),
        ("cost", "storage"),
        ("cost", "units"),
        ("cost", "forecast"),
        ("cost", "forecast", "--period", "week", "--engine", "trino"),
        ("cost", "budgets"),
        ("cost", "alerts"),
        ("cost", "anomalies"),
        ("cost", "whatif", "price", "--engine", "trino", "--percent", "-10"),
        ("cost", "whatif", "idle", "--engine", "trino", "--minutes", "10"),
        ("cost", "whatif", "move", "--template", "nothing", "--to", "duckdb"),
        ("cost", "whatif", "maintenance", "off"),
    ],
    ids=" ".join,
)
def test_every_question_has_an_answer_in_json(
    read: Callable[..., Any], command: tuple[str, ...]
) -> None:
    assert read(*command) is not None


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("cost", "report", "--by", "color"), "Known are"),
        (("cost", "report", "--engine", "oracle"), "not known"),
        (("cost", "forecast", "--period", "year"), "day, week, month"),
        (("cost", "whatif", "price", "--engine", "trino", "--percent", "ten"), "no number"),
        (("cost", "whatif", "maintenance", "maybe"), "on or off"),
        (("export", "focus", "--out", "x.csv", "--focus", "2.0"), "1.4, 1.2"),
    ],
)
def test_what_cannot_be_asked_is_told_in_words(
    run: Callable[..., tuple[int, str, str]], command: tuple[str, ...], words: str
) -> None:
    code, _, err = run(*command)
    assert code == 2
    assert words in err


def test_the_dashboard_is_json_that_asks_for_our_metrics(
    read: Callable[..., Any], tmp_path: Path
) -> None:
    read("export", "grafana", "--out", str(tmp_path / "costs.json"))
    found = json.loads((tmp_path / "costs.json").read_text(encoding="utf-8"))
    asked = [target["expr"] for panel in found["panels"] for target in panel["targets"]]
    assert all("lakehouse_cost_total" in one for one in asked)


def test_bills_and_savings_are_listed(
    read: Callable[..., Any], run: Callable[..., tuple[int, str, str]]
) -> None:
    assert read("cost", "bills") == {"bills": []}
    found = read("cost", "savings")
    assert found["actions"] == len(found["rows"])
    code, _, said = run("cost", "savings")
    assert code == 0
    assert "measured actions save" in said
