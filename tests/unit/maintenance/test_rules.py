"""Safety rules on real tables: each refuses, waits or voids for its own reason, and says so."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.catalog.location import local_path
from lakehouse_core.domain.maintenance import DESTRUCTIVE, Kind, State
from lakehouse_core.domain.query import QueryStatus, StatementKind
from lakehouse_core.maintenance.look import Lookout
from lakehouse_core.maintenance.plan import PRECONDITIONS
from lakehouse_core.maintenance.rules import RULES
from lakehouse_core.store.rows import to_arrow
from tests.factories import query_event
from tests.unit.maintenance.yard import SCHEMA, Yard

if TYPE_CHECKING:
    from lakehouse_core.domain.maintenance import Action

pytestmark = pytest.mark.slow
ORPHANS, EXPIRE = Kind.REMOVE_ORPHANS, Kind.EXPIRE_SNAPSHOTS
DELETING = sorted(DESTRUCTIVE)


def ran(yard: Yard, action: Action) -> tuple[State, str]:
    yard.maintainer.run_once()
    after = yard.now(action)
    return after.state, after.explanation or ""


def old_table(yard: Yard, files: int = 7, **properties: str) -> str:
    """A table whose snapshots are old enough to be expired, all but five."""
    table_id = yard.create(files=files, **properties)
    yard.clock.turn(days=10)
    return table_id


def change_config(yard: Yard, **maintenance: Any) -> None:
    settings = yard.config.maintenance
    changed = type(settings).model_validate(settings.model_dump() | maintenance)
    yard.maintainer = yard.new_maintainer(maintenance=changed)


def test_every_precondition_is_a_rule_and_every_rule_is_asked() -> None:
    named = {name for names in PRECONDITIONS.values() for name in names}
    assert named == {rule.id for rule in RULES}
    assert all(rule.__doc__ for rule in RULES)


def test_a_table_that_was_dropped_voids_the_approval(yard: Yard) -> None:
    table_id = yard.create()
    approved = yard.approve(table_id)
    with yard._catalog() as catalog:
        catalog.drop_table(table_id.removeprefix("lake."))
    state, why = ran(yard, approved)
    assert state is State.EXPIRED
    assert "is not in catalog" in why


def test_another_table_of_the_same_name_voids_the_approval(yard: Yard) -> None:
    table_id = yard.create()
    approved = yard.approve(table_id)
    with yard._catalog() as catalog:
        name = table_id.removeprefix("lake.")
        catalog.drop_table(name)
        catalog.create_table(name, schema=SCHEMA)
    state, why = ran(yard, approved)
    assert state is State.EXPIRED
    assert "made anew" in why


def test_appends_since_the_approval_do_not_matter(yard: Yard) -> None:
    table_id = yard.create()
    approved = yard.approve(table_id)
    yard.append(table_id, 99)
    assert ran(yard, approved)[0] is State.VERIFIED


def test_a_rollback_since_the_approval_voids_it(yard: Yard) -> None:
    table_id = yard.create(files=3)
    approved = yard.approve(table_id)
    base = yard.metadata(table_id).history[1].snapshot_id
    yard.change(table_id, lambda t: t.manage_snapshots().rollback_to_snapshot(base).commit())
    state, why = ran(yard, approved)
    assert state is State.EXPIRED
    assert "rolled back" in why


@pytest.mark.parametrize("kind", [Kind.COMPACT, *DELETING])
def test_a_missing_manifest_blocks(yard: Yard, kind: Kind) -> None:
    table_id = old_table(yard)
    approved = yard.approve(table_id, kind)
    lists = [one.manifest_list for one in yard.metadata(table_id).snapshots]
    victim = lists[-1] if kind is Kind.COMPACT else lists[0]
    local_path(str(victim)).unlink()
    state, why = ran(yard, approved)
    assert state is State.REFUSED
    assert "is missing" in why
    assert yard.jobs == []


@pytest.mark.parametrize("kind", DELETING)
def test_a_missing_data_file_blocks_what_deletes(yard: Yard, kind: Kind) -> None:
    table_id = old_table(yard)
    approved = yard.approve(table_id, kind)
    folder = local_path(yard.metadata(table_id).table_location) / "data"
    next(folder.rglob("*.parquet")).unlink()
    state, why = ran(yard, approved)
    assert state is State.REFUSED
    assert "damaged already" in why


@pytest.mark.parametrize("kind", DELETING)
def test_gc_enabled_false_is_obeyed(yard: Yard, kind: Kind) -> None:
    approved = yard.approve(old_table(yard, **{"gc.enabled": "false"}), kind)
    state, why = ran(yard, approved)
    assert state is State.REFUSED
    assert "gc.enabled=false" in why


@pytest.mark.parametrize("where", ["same", "inside", "around", "data path"])
@pytest.mark.parametrize("kind", DELETING)
def test_a_location_shared_with_another_table_is_refused(
    yard: Yard, kind: Kind, where: str
) -> None:
    table_id = old_table(yard)
    own = yard.metadata(table_id).table_location
    place = {"same": own, "inside": f"{own}/nested", "around": str(Path(own).parent)}
    properties = {"write.data.path": f"{own}/data"} if where == "data path" else {}
    with yard._catalog() as catalog:
        catalog.create_table(
            f"{table_id.split('.')[1]}.other",
            schema=SCHEMA,
            location=place.get(where),
            properties=properties,
        )
    approved = yard.approve(table_id, kind)
    state, why = ran(yard, approved)
    assert state is State.REFUSED
    assert "other" in why
    assert yard.jobs == []


def test_the_folders_of_a_fleet_are_read_once_and_then_what_changed(yard: Yard) -> None:
    """Two looks per action would read every metadata file of thousands of tables."""
    still, moving = yard.create(files=1), yard.create(files=1)
    lookout = Lookout(yard.config, yard.clock)
    before = lookout.folders()
    local_path(yard.metadata(still).location).unlink()  # so it cannot be read again
    elsewhere = f"{yard.metadata(moving).table_location}-elsewhere"
    yard.change(
        moving,
        lambda t: (
            t.transaction().set_properties({"write.data.path": elsewhere}).commit_transaction()
        ),
    )
    after = lookout.folders()
    lookout.close()
    assert after[still] == before[still]
    assert set(after[moving]) == {*before[moving], elsewhere}


def test_a_folder_behind_a_link_is_refused(yard: Yard) -> None:
    table_id = old_table(yard)
    approved = yard.approve(table_id, ORPHANS)
    folder = local_path(yard.metadata(table_id).table_location)
    moved = folder.with_name("moved")
    folder.rename(moved)
    folder.symlink_to(moved)
    state, why = ran(yard, approved)
    assert state is State.REFUSED
    assert "is a link" in why


def test_a_writer_at_work_keeps_its_files(yard: Yard) -> None:
    table_id = old_table(yard)
    writing = query_event(
        status=QueryStatus.RUNNING, statement_kind=StatementKind.INSERT, submitted_at=yard.clock()
    )
    yard.store.upsert("query_event", to_arrow("query_event", [writing]))
    approved = yard.approve(table_id, ORPHANS)
    state, why = ran(yard, approved)
    assert state is State.SCHEDULED
    assert writing.query_id in why


def test_orphans_younger_than_the_slowest_writer_stay(yard: Yard) -> None:
    table_id = old_table(yard)
    slow = query_event(
        statement_kind=StatementKind.INSERT,
        submitted_at=yard.clock() - timedelta(days=6),
        elapsed_ms=timedelta(days=4).total_seconds() * 1000,
    )
    yard.store.upsert("query_event", to_arrow("query_event", [slow]))
    approved = yard.approve(table_id, ORPHANS)
    yard.maintainer.run_once()
    older = yard.plans[0]["actions"][0]["guards"]["older_than"]
    assert older <= (yard.clock() - timedelta(days=8)).isoformat()
    assert yard.now(approved).state in {State.VERIFIED, State.FAILED}


def test_a_commit_from_the_future_makes_ages_doubtful(yard: Yard) -> None:
    table_id = yard.create(files=2)
    approved = yard.approve(table_id, ORPHANS)
    yard.clock.turn(hours=-2)
    state, why = ran(yard, approved)
    assert state is State.SCHEDULED
    assert "clock" in why


def test_nothing_old_enough_is_nothing_to_do(yard: Yard) -> None:
    table_id = yard.create(files=3)
    state, why = ran(yard, yard.approve(table_id, EXPIRE))
    assert state is State.REFUSED
    assert "none is old enough" in why


def test_a_snapshot_that_a_query_reads_is_kept(yard: Yard) -> None:
    table_id = old_table(yard, files=7)
    history = yard.metadata(table_id).history
    reading = query_event(
        status=QueryStatus.RUNNING,
        submitted_at=yard.clock(),
        snapshot_ids=tuple(one.snapshot_id for one in history[5:]),
    )
    yard.store.upsert("query_event", to_arrow("query_event", [reading]))
    approved = yard.approve(table_id, EXPIRE)
    state, why = ran(yard, approved)
    assert state is State.SCHEDULED
    assert "in use" in why


def test_a_query_that_does_not_say_what_it_reads_keeps_what_was_current(yard: Yard) -> None:
    table_id = yard.create(files=7)
    start = yard.clock()
    reading = query_event(status=QueryStatus.RUNNING, submitted_at=start, started_at=start)
    yard.store.upsert("query_event", to_arrow("query_event", [reading]))
    current = yard.metadata(table_id).history[0].snapshot_id
    for number in range(6):
        yard.append(table_id, 100 + number)
    yard.clock.turn(days=6)
    yard.approve(table_id, EXPIRE)
    yard.maintainer.run_once()
    guards = yard.plans[0]["actions"][0]["guards"]
    assert current in guards["keep_snapshot_ids"]


def test_branches_tags_and_flink_checkpoints_are_kept(yard: Yard) -> None:
    table_id = yard.create(files=2)
    flink = {"flink.job-id": "j1", "flink.max-committed-checkpoint-id": "7"}
    checkpoint = yard.append(table_id, 50, **flink)
    tagged = yard.append(table_id, 51)
    for number in range(6):
        yard.append(table_id, 60 + number)
    yard.change(table_id, lambda t: t.manage_snapshots().create_tag(tagged, "month").commit())
    yard.clock.turn(days=6)
    yard.approve(table_id, EXPIRE)
    yard.maintainer.run_once()
    guards = yard.plans[0]["actions"][0]["guards"]
    assert {checkpoint, tagged} <= set(guards["keep_snapshot_ids"])


def test_what_was_changed_a_moment_ago_is_left_alone(yard: Yard) -> None:
    table_id = yard.create(files=3)
    change_config(yard, quiet_period="10m")
    yard.change(table_id, lambda t: t.delete("id = 0"))
    approved = yard.approve(table_id)
    state, why = ran(yard, approved)
    assert state is State.SCHEDULED
    assert "quiet period" in why
    yard.clock.turn(minutes=11)
    assert ran(yard, approved)[0] is State.VERIFIED


def test_a_table_that_is_only_appended_to_is_not_starved(yard: Yard) -> None:
    table_id = yard.create(files=3)
    change_config(yard, quiet_period="10m")
    assert ran(yard, yard.approve(table_id))[0] is State.VERIFIED


def test_the_daily_budget_is_kept(yard: Yard) -> None:
    first, second = yard.create(files=3), yard.create(files=3)
    size = yard.propose(first).plan.input_bytes
    change_config(yard, bytes_per_day=int(size * 1.5))
    one, two = yard.approve(first, priority=2.0), yard.approve(second, priority=1.0)
    yard.maintainer.run_once()
    assert yard.now(one).state is State.VERIFIED
    assert yard.now(two).state is State.SCHEDULED
    assert "bytes_per_day" in (yard.now(two).explanation or "")
    yard.clock.turn(hours=25)
    yard.maintainer.run_once()
    assert yard.now(two).state is State.VERIFIED


def test_what_never_fits_the_budget_is_refused(yard: Yard) -> None:
    table_id = yard.create()
    change_config(yard, bytes_per_day=1)
    assert ran(yard, yard.approve(table_id))[0] is State.REFUSED


def test_a_policy_works_within_its_window(yard: Yard) -> None:
    table_id = yard.create()
    shut = f"{yard.clock() + timedelta(hours=2):%H:%M}-{yard.clock() + timedelta(hours=3):%H:%M}"
    policy = {"kinds": ["compact"], "tables": ["lake.*"], "window": shut}
    change_config(yard, policies=[policy])
    approved = yard.approve(table_id, decided_by="policy:1")
    assert ran(yard, approved) == (State.SCHEDULED, f"It waits for its window, {shut}")
    yard.clock.turn(hours=2, minutes=10)
    assert ran(yard, approved)[0] is State.VERIFIED
