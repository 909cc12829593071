"""`lakehelm recommend` and `lakehelm audit` on a served store, with wishes answered for real."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agents import trials
from lakehouse_core.domain.clock import utc_now
from tests.commands import Home, command_line, reading
from tests.ui.conftest import Place
from tests.ui.scenario import rows_of
from tests.unit.views.past import cost, ran

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


pytestmark = pytest.mark.duckdb  # the store is served over Quack


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


def proposal(read: Callable[..., Any], kind: str) -> dict[str, Any]:
    return next(
        row for row in read("recommend", "list", "--kind", kind) if row["state"] == "proposed"
    )


def test_the_list_has_everything_a_page_shows(read: Callable[..., Any]) -> None:
    rows = read("recommend", "list")
    assert [row["priority"] for row in rows] == sorted(
        (row["priority"] for row in rows), reverse=True
    )
    first = next(row for row in rows if row["evidence"] and row["kind"] != "route")
    assert first["plan"]["stages"][0]["call"].startswith("CALL `lake`.system.")
    assert {"engine_id", "runs", "saving_usd_month"} <= set(first["evidence"][0])
    assert {one["name"] for one in first["predicted"]} >= {"score", "saving_usd_month"}
    assert read("recommend") == rows


@pytest.mark.parametrize(
    ("args", "said"),
    [(("--state", "lost"), "open, all"), (("--kind", "vacuum"), "compact")],
)
def test_an_unknown_filter_is_refused(
    run: Callable[..., tuple[int, str, str]], args: tuple[str, str], said: str
) -> None:
    code, _, err = run("recommend", "list", *args)
    assert code == 2
    assert said in err


def test_show_prints_the_plan_verbatim(
    run: Callable[..., tuple[int, str, str]], read: Callable[..., Any]
) -> None:
    row = proposal(read, "compact")
    code, out, _ = run("recommend", "show", row["action_id"])
    assert code == 0
    assert row["plan"]["stages"][0]["call"] in out
    assert row["plan_hash"] in out
    assert row["risk"] in out
    assert "Who pays" in out
    assert read("recommend", "show", row["action_id"][:6])["action_id"] == row["action_id"]


def test_an_unknown_action_is_told(run: Callable[..., tuple[int, str, str]]) -> None:
    for args in (("show", "nobody"), ("approve", "nobody")):
        code, _, err = run("recommend", *args)
        assert code == 1
        assert "recommend list" in err


def test_approving_twice_is_refused(
    run: Callable[..., tuple[int, str, str]], read: Callable[..., Any]
) -> None:
    row = proposal(read, "compact")
    done = read("recommend", "approve", row["action_id"], "--as", "ana", "--reason", "slow")
    assert done["request"]["state"] == "done"
    assert (done["action"]["state"], done["action"]["decided_by"]) == ("approved", "ana")
    code, out, _ = run("recommend", "approve", row["action_id"], "--as", "bo", "--json")
    assert code == 1
    assert json.loads(out)["request"]["state"] == "refused"
    shown = read("recommend", "show", row["action_id"])
    assert [step["verb"] for step in shown["history"]][-2:] == ["approved", "approve refused"]


def test_another_plan_than_the_one_seen_is_not_approved(
    run: Callable[..., tuple[int, str, str]], read: Callable[..., Any]
) -> None:
    row = proposal(read, "compact")
    code, _, err = run("recommend", "approve", row["action_id"], "--plan-hash", "00" * 32)
    assert code == 1
    assert "not the one you have seen" in err


def test_an_expiry_wants_its_table_typed(
    run: Callable[..., tuple[int, str, str]], read: Callable[..., Any]
) -> None:
    row = proposal(read, "expire_snapshots")
    seen = ("--plan-hash", row["plan_hash"])
    code, _, err = run("recommend", "approve", row["action_id"], "--as", "ana", *seen)
    assert code == 1
    assert row["table_id"] in err
    typed = ("--confirm", row["table_id"])
    done = read("recommend", "approve", row["action_id"], "--as", "ana", *seen, *typed)
    assert done["action"]["state"] == "approved"


def test_what_deletes_files_is_approved_by_the_hash_that_was_seen(
    run: Callable[..., tuple[int, str, str]], read: Callable[..., Any]
) -> None:
    row = proposal(read, "expire_snapshots")
    typed = ("--confirm", row["table_id"])
    code, _, err = run("recommend", "approve", row["action_id"], "--as", "ana", *typed)
    assert code == 2
    assert f"--plan-hash {row['plan_hash']}" in err
    assert read("recommend", "show", row["action_id"])["state"] == "proposed"


def test_rejecting_and_snoozing(
    run: Callable[..., tuple[int, str, str]], read: Callable[..., Any]
) -> None:
    row = proposal(read, "expire_snapshots")
    snoozed = read("recommend", "snooze", row["action_id"], "--as", "ana", "--for", "12h")
    assert snoozed["action"]["state"] == "snoozed"
    assert run("recommend", "snooze", row["action_id"], "--for", "soon")[0] == 2
    assert run("recommend", "reject", row["action_id"], "--as", "ana")[0] == 1
    done = read("recommend", "reject", row["action_id"], "--as", "ana", "--reason", "archived")
    assert done["action"]["decision_reason"] == "archived"


def test_people_propose_what_no_rule_asks_for(
    run: Callable[..., tuple[int, str, str]], read: Callable[..., Any]
) -> None:
    args = ("recommend", "propose", "tpch.lineitem", "sort", "--columns", "l_shipdate,l_partkey")
    made = read(*args, "--as", "ana", "--reason", "range scans")["action"]
    assert (made["state"], made["proposed_by"]) == ("proposed", "ana")
    assert made["title"] == "Sort by l_shipdate, l_partkey"
    assert any("l_shipdate" in stage["call"] for stage in made["plan"]["stages"])
    code, _, err = run(*args, "--as", "bo")
    assert code == 1
    assert made["action_id"] in err
    assert run("recommend", "propose", "tpch.lineitem", "sort", "--as", "ana")[0] == 1
    assert run("recommend", "propose", "tpch.lineitem", "vacuum")[0] == 2
    assert run("recommend", "propose", "tpch.linetem", "sort")[0] == 1
    code, out, _ = run("recommend", "show", made["action_id"])
    assert code == 0
    assert "range scans" in out


def test_what_is_not_cured_is_told_beside_the_list(
    run: Callable[..., tuple[int, str, str]],
) -> None:
    code, out, _ = run("recommend", "list")
    assert code == 0
    assert "Not cured" in out
    assert "lake.demo.skewed" in out


def test_json_has_what_is_not_cured_with_the_reason(read: Callable[..., Any]) -> None:
    rows = [row for row in read("recommend", "list") if row["state"] == "no_cure"]
    (skewed,) = (row for row in rows if row["table_id"] == "lake.demo.skewed")
    assert (skewed["action_id"], skewed["kind"], skewed["rule"]) == (None, None, "skew")
    assert "finer partition" in skewed["explanation"]
    assert not read("recommend", "list", "--table", "lake.demo.events", "--kind", "sort")
    others = read("recommend", "list", "--state", "rejected")
    assert all(row["state"] != "no_cure" for row in others)


def test_the_audit_chain_verifies_until_a_row_is_touched(
    run: Callable[..., tuple[int, str, str]], read: Callable[..., Any], home: Home
) -> None:
    whole = read("audit", "verify")
    assert whole["is_intact"]
    assert whole["entries"] >= 4
    before = home.owner.read("SELECT actor FROM audit WHERE seq = 2").column("actor")[0].as_py()
    home.owner.transact("audit", ["UPDATE audit SET actor = 'mallory' WHERE seq = 2"])
    try:
        code, out, _ = run("audit", "verify", "--json")
        assert code == 1
        assert json.loads(out)["first_bad"] == 2
        code, _, err = run("audit", "verify")
        assert code == 1
        assert "Row 2 was changed" in err
    finally:
        home.owner.transact("audit", [f"UPDATE audit SET actor = '{before}' WHERE seq = 2"])  # noqa: S608 a name of ours


def test_a_template_that_is_cheaper_elsewhere_is_listed_and_approved_like_the_others(
    home: Home, read: Callable[..., Any], run: Callable[..., tuple[int, str, str]]
) -> None:
    now = utc_now()
    for engine, seconds in (("trino", 2.0), ("duckdb", 1.0)):
        ran(home.owner, "moving", engine, [seconds, seconds * 1.1] * 8, until=now, group="g")
    cost(home.owner, {("moving", "trino"): "0.4", ("moving", "duckdb"): "0.1"}, until=now)
    trials.propose(home.owner, utc_now, {"g": {"trino", "duckdb"}})
    text = "SELECT count(*) FROM lake.shop.orders WHERE day = ?"
    named = {"template_id": "moving", "dialect": "trino", "template": text, "seen_at": now}
    home.owner.upsert(
        "query_template", rows_of("query_template", [named | {"statement_kind": "select"}])
    )
    rows = read("recommend", "list", "--kind", "route")
    (found,) = [row for row in rows if row["template_id"] == "moving"]
    assert found["template"] == text
    assert text in run("recommend", "show", found["action_id"])[1]
    assert (found["from_engine"], found["to_engine"]) == ("trino", "duckdb")
    assert float(found["gain_usd_month"]) > 0
    shown = read("recommend", "show", found["action_id"])
    assert shown["evidence"]["before"]["trino"]["runs"] == 16
    answer = read("recommend", "approve", found["action_id"], "--as", "ana")
    assert (answer["action"]["state"], answer["action"]["share"]) == ("trial", 10)
    code, _, err = run("recommend", "approve", found["action_id"], "--as", "ana")
    assert code == 1
    assert "It is trial" in err
    assert read("maintain", "show", found["action_id"]) == read(
        "recommend", "show", found["action_id"]
    )
    ended = read("maintain", "cancel", found["action_id"], "--as", "ana")
    assert (ended["action"]["state"], ended["action"]["share"]) == ("cancelled", 0)
    assert read("audit", "verify")["is_intact"]
