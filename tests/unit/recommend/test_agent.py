"""The recommend agent: one open proposal per sickness, no flapping, no proposal twice."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agents.recommend import run_once
from lakehouse_core.config.models import MaintenancePolicy
from lakehouse_core.domain.maintenance import Action, Change, Kind, State
from lakehouse_core.domain.query import EngineId, TemplateId
from lakehouse_core.domain.table import TableName
from lakehouse_core.maintenance.audit import AUDIT_SQL, read_head, verify_chain
from lakehouse_core.maintenance.records import actions_of, audit_of
from lakehouse_core.maintenance.states import Ledger
from lakehouse_core.recommend.after_etl import PROPOSER_AFTER_ETL, etl_key
from tests.factories import lake_table, query_event, snapshot_commit, table_metrics
from tests.unit.recommend.test_cures import SMALL

if TYPE_CHECKING:
    from lakehouse_core.config import Config
    from tests.conftest import DemoConfig
    from tests.unit.recommend.conftest import Lake

HOUR = timedelta(hours=1)


@pytest.fixture(scope="module")
def config(load_demo_config: DemoConfig) -> Config:
    return load_demo_config()


def actions(lake: Lake) -> list[Action]:
    entries = audit_of(lake.store.read(AUDIT_SQL))
    assert verify_chain(entries, read_head(lake.store.path)).is_intact
    return list(actions_of(lake.store.read("SELECT * FROM action ORDER BY proposed_at, action_id")))


def run(lake: Lake, config: Config) -> list[Action]:
    run_once(lake.store, config, lake.clock)
    return actions(lake)


def with_policies(config: Config, **given: Any) -> Config:
    policy = MaintenancePolicy(**{"kinds": ("compact",), "tables": ("lake.demo.*",), **given})
    maintenance = config.maintenance.model_copy(update={"policies": (policy,)})
    return config.model_copy(update={"maintenance": maintenance})


def end(lake: Lake, action: Action, *states: State, **changes: Any) -> Action:
    ledger = Ledger(lake.store, lake.clock)
    for state in states:
        is_last = state is states[-1]
        action = ledger.move(action, state, by="ana", **(changes if is_last else {}))
    return action


def test_each_sick_table_gets_its_cure_and_the_healthy_none(lake: Lake, config: Config) -> None:
    lake.table("healthy")
    lake.table("events", **SMALL)
    deletes = {"delete_files": 10, "position_delete_files": 10, "delete_ratio": 0.5}
    lake.table("orders_cdc", **deletes, deleted_rows=2_000_000)
    lake.table("skewed", skew=40.0, partitions=12)
    lake.table("churn", snapshots=320, oldest_snapshot_at=lake.now - timedelta(days=20))
    lake.add(
        "snapshot_commit",
        *(
            snapshot_commit(table_id="lake.demo.churn", committed_at=lake.now - timedelta(days=19))
            for _ in range(310)
        ),
    )
    found = {(one.table_id, one.kind) for one in run(lake, config)}
    assert found == {
        ("lake.demo.events", Kind.COMPACT),
        ("lake.demo.orders_cdc", Kind.COMPACT),
        ("lake.demo.churn", Kind.EXPIRE_SNAPSHOTS),
    }


def test_what_a_tag_keeps_is_not_counted_as_old(lake: Lake, config: Config) -> None:
    at = lake.now - timedelta(days=20)
    commits = [snapshot_commit(table_id="lake.demo.churn", committed_at=at) for _ in range(20)]
    lake.add("snapshot_commit", *commits)
    tagged = tuple(one.snapshot_id for one in commits[:4])
    times = {"oldest_snapshot_at": at, "oldest_free_snapshot_at": at}
    lake.table("churn", snapshots=30, ref_snapshot_ids=tagged, **times)
    (found,) = run(lake, config)
    assert found.title == "Expire 16 of 30 snapshots"


def churned(lake: Lake, config: Config) -> None:
    """320 snapshots of one day, the last seen that day: nobody has written to the table since."""
    lake.table("churn", snapshots=320, oldest_snapshot_at=lake.now)
    commits = [
        snapshot_commit(table_id="lake.demo.churn", committed_at=lake.now + n * HOUR / 15)
        for n in range(320)
    ]
    lake.add("snapshot_commit", *commits)
    lake.wait(config.maintenance.keep_snapshots + 12 * HOUR)


def test_what_an_expiry_counts_is_what_its_plan_takes(lake: Lake, config: Config) -> None:
    churned(lake, config)
    (found,) = run(lake, config)
    cut = datetime.fromisoformat(found.plan.stages[0].arguments["older_than"])
    assert cut == lake.now - config.maintenance.keep_snapshots
    (left,) = (one for one in found.predicted if one.name == "snapshots")
    assert left.after == 320 - 12 * 15


def test_an_expiry_is_made_anew_when_much_more_can_go(lake: Lake, config: Config) -> None:
    churned(lake, config)
    run(lake, config)
    lake.wait(9 * HOUR)
    (found,) = run(lake, config)
    assert found.title == "Expire 315 of 320 snapshots"


def test_a_second_run_changes_nothing(lake: Lake, config: Config) -> None:
    lake.table("events", **SMALL)
    first = run(lake, config)
    lake.wait(HOUR)
    assert run(lake, config) == first


@pytest.mark.slow
def test_readers_come_from_the_history_and_from_the_pipeline(lake: Lake, config: Config) -> None:
    lake.table("events", **SMALL)
    for template in ("q1", "q2"):
        lake.template(template, "events")
    lake.template("w1", "events", kind="insert")
    lake.add(
        "query_event",
        *(
            query_event(
                engine_id=EngineId("trino"),
                template_id=TemplateId(template),
                submitted_at=lake.now - timedelta(minutes=minutes),
                planning_ms=400.0,
            )
            for template, minutes in (("q1", 5), ("q1", 6), ("q2", 90), ("w1", 5))
        ),
    )
    lake.add_rows(
        "template_hour",
        {
            "hour_at": lake.now - timedelta(hours=3),
            "template_id": "q2",
            "engine_id": "spark",
            "runs": 7,
            "execution_ms": 9e6,
            "bytes_scanned": 10**9,
        },
    )
    lake.add_rows(
        "watermark",
        {
            "source": "pipeline",
            "position": "{}",
            "event_at": lake.now - timedelta(minutes=30),
            "updated_at": lake.now,
        },
    )
    (found,) = run(lake, config)
    # The query of 90 minutes ago lies in an hour the pipeline has: its sums count, not the event.
    assert [(one.engine_id, one.template_id, one.runs) for one in found.evidence] == [
        ("spark", "q2", 7),
        ("trino", "q1", 2),
    ]
    assert found.gain_usd_month is not None
    assert any(one.name == "planning_ms" for one in found.predicted)


@pytest.mark.slow
def test_small_differences_change_nothing_and_large_ones_refresh(
    lake: Lake, config: Config
) -> None:
    lake.table("events", **SMALL)
    (first,) = run(lake, config)
    lake.table("events", **{**SMALL, "data_files": 350, "small_files": 350})
    assert run(lake, config) == [first]
    grown = {**SMALL, "data_files": 700, "small_files": 700}
    lake.table("events", **{**grown, "file_size_histogram": (700, 0, 0, 0, 0, 0)})
    (second,) = run(lake, config)
    assert second.action_id == first.action_id
    assert second.revision == first.revision + 1
    assert second.plan_hash != first.plan_hash
    assert "700 of 700" in second.reason


@pytest.mark.slow
def test_a_standing_proposal_is_renewed_before_it_expires(lake: Lake, config: Config) -> None:
    lake.table("events", **SMALL)
    (first,) = run(lake, config)
    lake.wait(config.maintenance.expires_after * 0.6)
    (renewed,) = run(lake, config)
    assert renewed.action_id == first.action_id
    assert renewed.expires_at > first.expires_at
    assert renewed.plan_hash == first.plan_hash


@pytest.mark.slow
def test_what_the_table_does_not_need_any_more_is_withdrawn(lake: Lake, config: Config) -> None:
    lake.table("events", **SMALL)
    run(lake, config)
    lake.table("events", snapshot_id=2)
    (found,) = run(lake, config)
    assert found.state is State.EXPIRED
    assert "does not need it" in str(found.explanation)


def after_etl(lake: Lake, config: Config, files: int) -> Action:
    """What a batch job has just written is proposed to be put together, and nothing else."""
    lake.table("events", **SMALL)
    (whole,) = run(lake, config)
    end(lake, whole, State.EXPIRED)
    part = replace(
        whole,
        action_id="after-etl",
        dedupe_key=etl_key(whole.table_id),
        proposed_by=PROPOSER_AFTER_ETL,
        predicted=(Change(name="data_files", unit="files", before=files, after=1),),
    )
    Ledger(lake.store, lake.clock).propose(part)
    return part


def seen_again(lake: Lake, config: Config, action: Action) -> Action:
    return next(one for one in run(lake, config) if one.action_id == action.action_id)


@pytest.mark.slow
def test_a_part_is_not_proposed_beside_the_whole(lake: Lake, config: Config) -> None:
    found = seen_again(lake, config, after_etl(lake, config, SMALL["data_files"]))
    assert found.state is State.EXPIRED
    assert "The whole table" in str(found.explanation)


@pytest.mark.slow
def test_a_part_of_a_table_that_cares_for_itself_is_withdrawn(lake: Lake, config: Config) -> None:
    part = after_etl(lake, config, 10)
    own = {"namespace": "demo"}  # as if the pipeline kept its tables there
    pipeline = config.pipeline.model_copy(update=own)
    found = seen_again(lake, config.model_copy(update={"pipeline": pipeline}), part)
    assert found.state is State.EXPIRED


@pytest.mark.slow
@pytest.mark.parametrize(
    ("files_then", "state"), [(10, State.PROPOSED), (336, State.EXPIRED)], ids=["same", "fewer"]
)
def test_a_part_whose_files_are_gone_is_withdrawn(
    lake: Lake, config: Config, files_then: int, state: State
) -> None:
    part = after_etl(lake, config, files_then)
    lake.table("events", snapshot_id=2, data_files=10)
    found = seen_again(lake, config, part)
    assert found.state is state
    assert ("10" in str(found.explanation)) == (state is State.EXPIRED)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seen", "said"),
    [({"dropped": True}, "does not exist"), ({"error": "manifest gone"}, "manifest gone")],
)
def test_proposals_for_tables_that_are_gone_are_withdrawn(
    lake: Lake, config: Config, seen: dict[str, Any], said: str
) -> None:
    lake.table("events", **SMALL)
    run(lake, config)
    dropped_at = lake.now if seen.get("dropped") else None
    lake.add("lake_table", lake_table(dropped_at=dropped_at, error=seen.get("error")))
    (found,) = run(lake, config)
    assert found.state is State.EXPIRED
    assert said in str(found.explanation)


def test_a_table_made_anew_gets_a_proposal_of_its_own(lake: Lake, config: Config) -> None:
    lake.table("events", **SMALL)
    run(lake, config)
    lake.add("lake_table", lake_table(table_uuid="another"))
    lake.wait(HOUR)
    assert [one.state for one in run(lake, config)] == [State.EXPIRED, State.PROPOSED]


def test_what_was_rejected_comes_back_only_when_it_is_much_worse(
    lake: Lake, config: Config
) -> None:
    lake.table("events", **SMALL)
    end(lake, run(lake, config)[0], State.REJECTED)
    lake.table("events", **{**SMALL, "data_files": 450, "small_files": 450})
    assert len(run(lake, config)) == 1
    lake.wait(timedelta(days=30))
    lake.table("events", **{**SMALL, "data_files": 3_360, "small_files": 3_360})
    assert len(run(lake, config)) == 2


def test_what_sleeps_is_left_alone_until_it_wakes(lake: Lake, config: Config) -> None:
    lake.table("events", **SMALL)
    end(lake, run(lake, config)[0], State.SNOOZED, snoozed_until=lake.now + timedelta(days=2))
    assert [one.state for one in run(lake, config)] == [State.SNOOZED]
    lake.wait(timedelta(days=2))
    (awake,) = run(lake, config)
    assert awake.state is State.PROPOSED
    assert awake.snoozed_until is None


def test_what_is_under_way_is_not_proposed_again(lake: Lake, config: Config) -> None:
    lake.table("events", **SMALL)
    approved = end(lake, run(lake, config)[0], State.APPROVED)
    assert run(lake, config) == [approved]


DONE = (State.APPROVED, State.RUNNING, State.VERIFYING, State.VERIFIED)


def test_what_was_just_done_is_not_proposed_from_old_metrics(lake: Lake, config: Config) -> None:
    lake.table("events", **SMALL)
    proposal = run(lake, config)[0]
    lake.wait(HOUR)
    end(lake, proposal, *DONE, ended_at=lake.now)
    assert len(run(lake, config)) == 1


@pytest.mark.slow
def test_what_was_done_is_proposed_when_it_is_bad_again(lake: Lake, config: Config) -> None:
    lake.table("events", **SMALL)
    end(lake, run(lake, config)[0], *DONE, ended_at=lake.now)
    lake.wait(HOUR)
    lake.table("events", snapshot_id=2, data_files=1, total_bytes=10**8)
    assert len(run(lake, config)) == 1
    lake.wait(HOUR)
    lake.table("events", snapshot_id=3, **SMALL)
    assert [one.state for one in run(lake, config)] == [State.VERIFIED, State.PROPOSED]


def small(files: int) -> dict[str, Any]:
    counts = {"data_files": files, "small_files": files}
    return {**SMALL, **counts, "file_size_histogram": (files, 0, 0, 0, 0, 0)}


@pytest.mark.slow
def test_a_stream_s_table_is_compacted_again_when_it_is_critical_again(
    lake: Lake, config: Config
) -> None:
    """Long before a quarter of the files is back; but not at once, and once."""
    lake.table("events", **SMALL)
    left = (Change(name="data_files", unit="files", before=336, after=15),)
    end(lake, run(lake, config)[0], *DONE, ended_at=lake.now, realised=left)
    lake.wait(HOUR / 4)
    lake.table("events", snapshot_id=2, **small(40))
    assert len(run(lake, config)) == 1  # a table that was just worked on is left to its writers
    lake.wait(HOUR)
    lake.table("events", snapshot_id=3, **small(17))
    assert len(run(lake, config)) == 1  # as few files as it was left with
    lake.table("events", snapshot_id=4, **small(40))
    assert [one.state for one in run(lake, config)] == [State.VERIFIED, State.PROPOSED]
    lake.table("events", snapshot_id=5, **small(42))
    assert [one.state for one in run(lake, config)] == [State.VERIFIED, State.PROPOSED]


@pytest.mark.slow
def test_what_grows_beside_it_does_not_bring_a_done_action_back(lake: Lake, config: Config) -> None:
    """Still past its limit, with more snapshots, but with as few files as it was left with."""
    lake.table("events", **SMALL)
    realised = (
        Change(name="data_files", unit="files", before=336, after=100),
        Change(name="snapshots", unit="snapshots", before=3, after=4),
    )
    end(lake, run(lake, config)[0], *DONE, ended_at=lake.now, realised=realised)
    lake.wait(HOUR)
    left = {"data_files": 104, "small_files": 104, "file_size_histogram": (104, 0, 0, 0, 0, 0)}
    lake.table("events", snapshot_id=2, **{**SMALL, **left, "snapshots": 60})
    assert [one.state for one in run(lake, config)] == [State.VERIFIED]


def test_what_failed_waits_a_day(lake: Lake, config: Config) -> None:
    lake.table("events", **SMALL)
    end(lake, run(lake, config)[0], State.APPROVED, State.RUNNING, State.FAILED, ended_at=lake.now)
    lake.wait(HOUR)
    assert len(run(lake, config)) == 1
    lake.wait(timedelta(days=1))
    assert len(run(lake, config)) == 2


def test_a_policy_approves_and_signs(lake: Lake, config: Config) -> None:
    lake.table("events", **SMALL)
    (found,) = run(lake, with_policies(config))
    assert (found.state, found.decided_by) == (State.APPROVED, "policy:1")
    verbs = [(one.actor, one.verb) for one in audit_of(lake.store.read(AUDIT_SQL))]
    assert verbs == [("lakehelm", "proposed"), ("policy:1", "approved")]


def test_a_policy_whose_window_opens_later_approves_then(lake: Lake, config: Config) -> None:
    lake.table("events", **SMALL)
    night = with_policies(config, window="22:00-04:00")
    assert run(lake, night)[0].state is State.PROPOSED
    lake.wait(timedelta(hours=11))
    assert run(lake, night)[0].state is State.APPROVED


def test_after_a_failure_a_policy_leaves_the_table_to_humans(lake: Lake, config: Config) -> None:
    lake.table("events", **SMALL)
    end(lake, run(lake, config)[0], State.APPROVED, State.RUNNING, State.FAILED, ended_at=lake.now)
    lake.wait(timedelta(days=2))
    assert run(lake, with_policies(config))[-1].state is State.PROPOSED


def test_tables_of_the_pipeline_are_cared_for_by_itself(lake: Lake, config: Config) -> None:

    lake.add("lake_table", lake_table(table_id="lake.ops.query_event"))
    lake.add("table_metrics", table_metrics(table_id="lake.ops.query_event", **SMALL))
    assert run(lake, config) == []
    off = config.pipeline.model_copy(update={"enabled": False})
    assert len(run(lake, config.model_copy(update={"pipeline": off}))) == 1


@pytest.mark.slow
def test_names_of_tables_are_data(lake: Lake, config: Config) -> None:
    for name in ("it's", 'quo"te', "semi;colon--", "new\nline", "dollar$1", "{file}"):
        table_id = str(TableName("lake", ("demo",), name))
        seen = lake_table(table_id="lake.demo.x", table_name=name)

        lake.add("lake_table", replace(seen, table_id=table_id))
        lake.add("table_metrics", table_metrics(table_id=table_id, **SMALL))
    found = run(lake, config)
    assert len(found) == 6
    assert run(lake, config) == found
