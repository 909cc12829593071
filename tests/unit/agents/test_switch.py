"""Engines are put into the state somebody wants: once, with who, why and an audit row."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from agents.probe import ENGINES_SQL, EngineRow
from agents.switch import Switches
from lakehouse_core.domain.engine import EngineRequest
from lakehouse_core.domain.query import EngineId
from lakehouse_core.maintenance.audit import AUDIT_SQL, head_file, read_head, verify_chain
from lakehouse_core.maintenance.records import audit_of
from lakehouse_core.routing.lifecycle import StoreFleet
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.views.rows import records
from tests.factories import NOW, engine_probe, unique

if TYPE_CHECKING:
    from lakehouse_core.store.owner import OwnerStore

TRINO = EngineRow(
    engine_id="trino",
    engine_type="trino",
    dialect="trino",
    catalog="lake",
    url=None,
    configured="active",
    changed_by="configuration",
    reason=None,
    changed_at=NOW - timedelta(days=1),
)


def ask(store: OwnerStore, **given: Any) -> None:
    wish = {
        "request_id": unique("wish"),
        "asked_at": NOW,
        "engine_id": EngineId("trino"),
        "configured": "maintenance",
        "actor": "ana",
        "reason": "new disks",
        "state": "waiting",
        **given,
    }
    store.upsert("engine_request", to_arrow("engine_request", [EngineRequest(**wish)]))


def answers(store: OwnerStore) -> list[tuple[str, str | None]]:
    rows = records(EngineRequest, store.read("SELECT * FROM engine_request ORDER BY asked_at"))
    return [(row.state, row.answer) for row in rows]


def engine(store: OwnerStore) -> EngineRow:
    (row,) = records(EngineRow, store.read(ENGINES_SQL))
    return row


def taken_up(store: OwnerStore) -> int:
    return Switches(store, lambda: NOW).take_up()


def test_a_wish_is_carried_out_once_with_who_and_why(store: OwnerStore) -> None:
    head_file(store.path).unlink(missing_ok=True)
    store.upsert("engine", to_arrow("engine", [TRINO]))
    ask(store)
    assert (taken_up(store), taken_up(store)) == (1, 0)
    now = engine(store)
    assert (now.configured, now.changed_by, now.reason, now.changed_at) == (
        *("maintenance", "ana", "new disks"),
        NOW,
    )
    assert answers(store) == [("done", "trino is maintenance now")]
    chain = audit_of(store.read(AUDIT_SQL))
    assert verify_chain(chain, read_head(store.path)).is_intact
    assert (chain[-1].actor, chain[-1].verb) == ("ana", "engine maintenance")
    assert chain[-1].action_id == "engine:trino"


def test_out_of_service_needs_a_reason_and_back_does_not(store: OwnerStore) -> None:
    store.upsert("engine", to_arrow("engine", [TRINO]))
    ask(store, reason=" ")
    taken_up(store)
    assert engine(store) == TRINO
    assert answers(store)[0][0] == "refused"
    ask(store, configured="active", reason=None, asked_at=NOW + timedelta(seconds=1))
    taken_up(store)
    assert answers(store)[1] == ("done", "trino is active now")


def test_an_engine_that_is_gone_is_refused(store: OwnerStore) -> None:
    ask(store)
    assert taken_up(store) == 1
    assert answers(store) == [("refused", "engine trino is not known")]


# --- what the router makes of it ------------------------------------------------------------------


def fleet_at(store: OwnerStore, seconds: float = 0) -> StoreFleet:
    fleet = StoreFleet(timedelta(seconds=10), clock=lambda: NOW + timedelta(seconds=seconds))
    fleet.refresh(store)
    return fleet


def test_the_router_sees_state_person_reason_health_and_load(store: OwnerStore) -> None:
    store.upsert("engine", to_arrow("engine", [TRINO]))
    probe = engine_probe(engine_id="trino", probed_at=NOW, observed="healthy", running_queries=3)
    store.upsert("engine_probe", to_arrow("engine_probe", [probe]))
    well = fleet_at(store).standing(EngineId("trino"))
    assert (well.configured, well.observed, well.reason) == ("active", "healthy", "")
    assert well.running == 3
    ask(store)
    taken_up(store)
    out = fleet_at(store).standing(EngineId("trino"))
    assert (out.configured, out.reason) == ("maintenance", "maintenance by ana: new disks")


def test_an_old_look_is_no_look(store: OwnerStore) -> None:
    store.upsert("engine", to_arrow("engine", [TRINO]))
    probe = engine_probe(engine_id="trino", probed_at=NOW, observed="unhealthy", detail="down")
    store.upsert("engine_probe", to_arrow("engine_probe", [probe]))
    seen = fleet_at(store).standing(EngineId("trino"))
    assert (seen.observed, seen.reason) == ("unhealthy", "down")
    assert fleet_at(store, 61).standing(EngineId("trino")).observed == "unknown"
    assert fleet_at(store).standing(EngineId("nobody")).observed == "unknown"


def test_refreshing_tells_whether_anything_changed(store: OwnerStore) -> None:
    store.upsert("engine", to_arrow("engine", [TRINO]))
    fleet = StoreFleet(timedelta(seconds=10), clock=lambda: NOW)
    assert (fleet.refresh(store), fleet.refresh(store)) == (True, False)
