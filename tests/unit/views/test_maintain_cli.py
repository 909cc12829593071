"""`lakehelm maintain` on a served store: what waits, what came of it, cancelling for real."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.cli import main
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.maintenance import Action, Change, Saving, State
from lakehouse_core.maintenance.records import actions_of
from lakehouse_core.maintenance.states import Ledger
from lakehouse_core.store.rows import to_arrow
from tests.ui.conftest import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from lakehouse_core.store.owner import OwnerStore

pytestmark = pytest.mark.duckdb  # the store is served over Quack
DONE = (State.APPROVED, State.RUNNING, State.VERIFYING, State.VERIFIED)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Place:
    return Place.below(tmp_path_factory.mktemp("home"), repository)


@pytest.fixture(scope="module")
def owner(place: Place) -> Iterator[OwnerStore]:
    with place.served(filled=True) as opened:
        yield opened


@pytest.fixture
def run(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    for name, value in place.environ.items():
        monkeypatch.setenv(name, value)

    def command(*args: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            main(args)
        return int(ended.value.code or 0), capsys.readouterr().out

    return command


def brought(owner: OwnerStore, *states: State, **facts: Any) -> Action:
    ledger = Ledger(owner, utc_now)
    action = actions_of(owner.read("SELECT * FROM action WHERE state = 'proposed' LIMIT 1"))[0]
    for state in states:
        given = {"decided_by": "ana", "decided_at": utc_now()} if state is State.APPROVED else {}
        if state is State.RUNNING:
            given = {"started_at": utc_now(), "operation_id": f"run.{action.action_id}"}
        if state is states[-1]:
            given |= facts
        action = ledger.move(action, state, by="lakehelm", **given)
    return action


def test_show_has_predicted_and_realised(
    owner: OwnerStore, run: Callable[..., tuple[int, str]]
) -> None:
    realised = (Change(name="score", unit="points", before=40, after=97),)
    done = brought(owner, *DONE, realised=realised, ended_at=utc_now())
    saving = Saving(
        action_id=done.action_id,
        engine_id="trino",
        template_id="t",
        measured_at=utc_now(),
        runs_before=9,
        runs_after=4,
        bytes_per_run_before=2e6,
        bytes_per_run_after=1e6,
        ms_per_run_before=200.0,
        ms_per_run_after=50.0,
        usd_month=Decimal("1.25"),
    )
    owner.upsert("savings", to_arrow("savings", [saving]))
    code, out = run("maintain", "show", done.action_id, "--json")
    shown = json.loads(out)
    assert code == 0
    assert shown["state"] == "verified"
    assert shown["realised"][0]["after"] == 97
    assert shown["predicted"]
    assert {"name", "predicted", "realised"} <= set(shown["figures"][0])
    assert shown["saved_usd_month"] == 1.25
    assert shown["log_file"].endswith("run.log")
    code, out = run("maintain", "show", done.action_id)
    assert code == 0
    assert "Predicted and realised" in out


def test_the_list_tells_groups_apart(
    owner: OwnerStore, run: Callable[..., tuple[int, str]]
) -> None:
    waiting = brought(owner, State.APPROVED)
    refused = brought(owner, State.APPROVED, State.REFUSED, explanation="gc.enabled=false")

    def ids(*args: str) -> list[str]:
        code, out = run("maintain", "list", *args, "--json")
        assert code == 0
        return [row["action_id"] for row in json.loads(out)]

    assert waiting.action_id in ids("--state", "waiting")
    assert refused.action_id in ids("--state", "refused")
    assert refused.action_id not in ids("--state", "waiting")
    assert {waiting.action_id, refused.action_id} <= set(ids())
    assert run("maintain", "list", "--state", "nonsense")[0] == 2


def test_what_waits_is_cancelled_once(
    owner: OwnerStore, run: Callable[..., tuple[int, str]]
) -> None:
    waiting = brought(owner, State.APPROVED, State.SCHEDULED)
    code, out = run("maintain", "cancel", waiting.action_id, "--as", "bo", "--json")
    assert code == 0
    assert json.loads(out)["action"]["state"] == "cancelled"
    assert run("maintain", "cancel", waiting.action_id, "--as", "bo")[0] == 1
    assert run("maintain", "cancel", "no-such", "--as", "bo")[0] != 0
