from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from agents.retention import run_once
from lakehouse_core.store.rows import to_arrow
from tests.factories import NOW, agent_run, query_event, watermark

if TYPE_CHECKING:
    from lakehouse_core.config import Config
    from lakehouse_core.store.owner import OwnerStore


def test_history_beyond_the_retention_leaves(demo_config: Config, store: OwnerStore) -> None:
    old = query_event(submitted_at=NOW - timedelta(days=91))
    new = query_event(submitted_at=NOW - timedelta(days=89))
    store.upsert("query_event", to_arrow("query_event", [old, new]))
    assert run_once(store, demo_config, lambda: NOW).rows == 1
    left = store.read("SELECT query_id FROM query_event").column("query_id").to_pylist()
    assert left == [new.query_id]


def test_runs_that_did_nothing_are_kept_for_a_day(demo_config: Config, store: OwnerStore) -> None:
    def run(name: str, age: timedelta, **given: object) -> object:
        return agent_run(
            run_id=name,
            started_at=NOW - age,
            **{"outcome": "ok", "rows_written": 0, "dead_letters": 0, "error": None, **given},
        )

    day = timedelta(days=1)
    runs = [
        run("idle-older", 3 * day),
        run("idle-old", 2 * day),
        run("idle-new", day / 2),
        run("rows-old", 2 * day, rows_written=5),
        run("failed-old", 2 * day, outcome="failed", error="x"),
    ]
    store.upsert("agent_run", to_arrow("agent_run", runs))
    run_once(store, demo_config, lambda: NOW)
    left = store.read("SELECT run_id FROM agent_run").column("run_id").to_pylist()
    assert sorted(left) == ["failed-old", "idle-new", "rows-old"]


def test_the_last_success_of_an_agent_stays_however_old(
    demo_config: Config, store: OwnerStore
) -> None:
    ages = {"first": 300, "last": 200}
    runs = [
        agent_run(run_id=name, agent="collect:trino", started_at=NOW - timedelta(days=days))
        for name, days in ages.items()
    ]
    idle = agent_run(agent="probe", started_at=NOW - timedelta(days=2), rows_written=0)
    failed = agent_run(agent="probe", started_at=NOW, outcome="failed", error="x")
    store.upsert("agent_run", to_arrow("agent_run", [*runs, idle, failed]))
    run_once(store, demo_config, lambda: NOW)
    left = store.read("SELECT run_id FROM agent_run").column("run_id").to_pylist()
    assert sorted(left) == sorted(["last", idle.run_id, failed.run_id])


def test_event_logs_that_were_read_leave_and_others_stay(
    demo_config: Config, store: OwnerStore
) -> None:
    folder = Path(demo_config.engines["spark"].event_log)
    folder.mkdir(parents=True)
    old = (NOW - timedelta(days=30)).timestamp()
    for name in ("read", "unread"):
        (folder / name).write_text("{}\n")
        os.utime(folder / name, (old, old))
    read = {"f": 1, "o": 3, "u": 0, "done": True, "m": old}
    position = {"v": 1, "horizon": 0, "apps": {"read": read}}
    mark = watermark(source="spark", position=json.dumps(position))
    store.upsert("watermark", to_arrow("watermark", [mark]))
    assert run_once(store, demo_config, lambda: NOW).error is None
    assert [path.name for path in folder.iterdir()] == ["unread"]
