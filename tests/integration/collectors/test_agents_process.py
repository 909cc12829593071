"""The agents process as it is run: `python -m agents`, its store, its signals, its command line."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.bootstrap import open_store
from lakehouse_core.config import load_config
from lakehouse_core.config.models import DuckDBEngine
from lakehouse_core.domain.errors import StoreError
from lakehouse_core.engines.duckdb.journal import Journal
from lakehouse_core.runtime.secrets import ensure_tokens
from lakehouse_core.store.owner import OwnerStore
from lakehouse_core.store.rows import to_arrow
from tests.factories import free_port, free_port_pair, query_event, unique

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakehouse_core.config import Config

CLI = "from lakehouse_core.cli import main; main()"
ROOT = Path(__file__).parents[3]
PATIENCE_SECONDS = 90

pytestmark = pytest.mark.duckdb  # Quack serves the store


class Installation:
    """A home folder with a configuration of its own, and the processes on it."""

    def __init__(self, home: Path) -> None:
        self.environ = {
            "LAKEHELM_HOME": str(home),
            "LAKEHELM__STORE__PORT": str(free_port_pair()),
            "LAKEHELM__ENGINES__SPARK__PORT": str(free_port()),
            "LAKEHELM__ENGINES__SPARK__UI_PORT": str(free_port()),
            "LAKEHELM__ENGINES__TRINO__PORT": str(free_port()),
            "LAKEHELM__COLLECT__DUCKDB__EVERY": "200ms",
            "LAKEHELM__COLLECT__TRINO__EVERY": "500ms",
        }
        self.file = ROOT / "config" / "lakehelm.yaml"
        self.config: Config = load_config(self.file, self.environ).config
        ensure_tokens(self.config)
        engine = self.config.engines["duckdb"]
        assert isinstance(engine, DuckDBEngine)
        self.journal = Journal(Path(engine.journal))
        self.log = self.config.home / "agents.log"
        self.ready = self.config.home / "run" / "agents.ready"
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, *, wait: bool = True) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as sink:
            process = subprocess.Popen(
                [sys.executable, "-m", "agents", "--config", str(self.file)],
                env={**os.environ, **self.environ},
                cwd=ROOT,
                stdout=sink,
                stderr=subprocess.STDOUT,
            )
        self._processes.append(process)
        if wait:
            until(lambda: self.ready.exists() or process.poll() is not None)
            assert process.poll() is None, self.log.read_text()
        return process

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.wait()
        self.ready.unlink(missing_ok=True)

    def lakehelm(self, *arguments: str) -> tuple[int, Any]:
        done = subprocess.run(
            [sys.executable, "-c", CLI, *arguments, "--json", "--config", str(self.file)],
            env={**os.environ, **self.environ},
            cwd=ROOT,
            capture_output=True,
            check=False,
        )
        output = json.loads(done.stdout) if done.stdout.strip() else done.stderr.decode()
        return done.returncode, output

    def read(self, sql: str, **params: Any) -> list[dict[str, Any]]:
        with open_store(self.config) as client:
            return client.read(sql, **params).to_pylist()

    def write_journal(self, count: int) -> set[str]:
        events = [query_event(query_id=unique("journal")) for _ in range(count)]
        for event in events:
            assert self.journal.write(event)
        return {event.query_id for event in events}

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Installation]:
    made = Installation(tmp_path / "home")
    yield made
    made.close()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        threading.Event().wait(0.05)


def collected(home: Installation) -> set[str]:
    return {row["query_id"] for row in home.read("SELECT query_id FROM query_event")}


def last_run(home: Installation, agent: str) -> dict[str, Any]:
    sql = "FROM agent_run WHERE agent = $agent AND outcome <> 'running' ORDER BY started_at DESC"
    rows = home.read(sql, agent=agent)
    return rows[0] if rows else {}


def test_it_collects_serves_and_stops_cleanly(home: Installation) -> None:
    first = home.write_journal(20)
    process = home.start()
    until(lambda: collected(home) == first)
    second = home.write_journal(20)
    until(lambda: collected(home) == first | second)
    # Trino is not running: its job fails, with the reason, and harms nobody.
    until(lambda: last_run(home, "collect:trino").get("outcome") == "failed")
    assert "check that Trino's coordinator is running" in last_run(home, "collect:trino")["error"]
    until(lambda: last_run(home, "probe").get("outcome") == "ok")
    engines = {row["engine_id"]: row for row in home.read("FROM engine")}
    assert set(engines) == set(home.config.engines)
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_SECONDS) == 0
    assert not home.ready.exists()
    lines = [json.loads(line) for line in home.log.read_text().splitlines()]
    assert lines[-1]["event"] == "agents.stopped"
    assert all("at" in line and "level" in line for line in lines)
    with OwnerStore.open(home.config.store) as store:
        rows = store.read("SELECT query_id FROM query_event").column("query_id").to_pylist()
        assert sorted(rows) == sorted(first | second)


def test_killed_while_others_write_it_comes_back_with_every_acknowledged_row_once(
    home: Installation,
) -> None:
    acknowledged: set[str] = set()
    lock = threading.Lock()
    stop = threading.Event()

    def write() -> None:
        with open_store(home.config, role="writer") as client:
            while not stop.is_set():
                events = [query_event(query_id=unique("client")) for _ in range(50)]
                client.upsert("query_event", to_arrow("query_event", events))
                with lock:
                    acknowledged.update(event.query_id for event in events)

    process = home.start()
    writers = [threading.Thread(target=write) for _ in range(2)]
    journalled: set[str] = set()
    for writer in writers:
        writer.start()
    try:
        for _ in range(3):
            enough = len(acknowledged) + 300
            journalled |= home.write_journal(30)
            until(lambda enough=enough: len(acknowledged) >= enough)  # type: ignore[misc]
            home.kill(process)
            process = home.start()
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    expected = acknowledged | journalled
    until(lambda: expected <= collected(home))
    doubled = home.read(
        "SELECT query_id FROM query_event GROUP BY engine_id, query_id HAVING count(*) > 1"
    )
    assert doubled == []
    assert home.read("FROM dead_letter") == []
    interrupted = home.read("FROM agent_run WHERE error = 'its process ended while it ran'")
    assert all(run["outcome"] == "failed" for run in interrupted)


def test_a_second_one_says_that_the_store_is_taken(home: Installation) -> None:
    home.start()
    second = home.start(wait=False)
    assert second.wait(PATIENCE_SECONDS) == 1
    log = home.log.read_text()
    assert str(home.config.store.path) in log
    assert "Traceback" not in log


def test_without_its_tokens_it_says_which_are_missing(home: Installation) -> None:
    for file in (home.config.home / "secrets").iterdir():
        file.unlink()
    process = home.start(wait=False)
    assert process.wait(PATIENCE_SECONDS) == 2
    log = home.log.read_text()
    assert "store-writer" in log
    assert "Traceback" not in log


def test_collecting_once_works_beside_the_agents_and_without_them(home: Installation) -> None:
    ids = home.write_journal(3)
    code, reports = home.lakehelm("collect", "--once", "duckdb")
    assert code == 0
    assert [(r["source"], r["dead_letters"], r["error"]) for r in reports] == [("duckdb", 0, None)]
    assert reports[0]["rows"] >= 3
    assert reports[0]["newest_event_age_seconds"] >= 0
    assert reports[0]["watermark"].endswith("Z")
    home.start()
    assert collected(home) >= ids
    code, reports = home.lakehelm("collect", "--once")
    assert code == 4  # Trino and Spark are not there, the others are
    outcomes = {r["source"]: r["outcome"] for r in reports}
    assert (outcomes["duckdb"], outcomes["trino"]) == ("ok", "failed")
    code, _ = home.lakehelm("collect", "--once", "trino")
    assert code == 3
    code, message = home.lakehelm("collect", "--once", "nope")
    assert code == 2
    assert "nope" in message
    code, agents = home.lakehelm("agents")
    assert code == 0
    by_name = {a["agent"]: a for a in agents}
    assert {"collect:duckdb", "collect:trino", "probe", "health", "retention"} <= set(by_name)
    assert "check that Trino's coordinator is running" in by_name["collect:trino"]["last_error"]
    assert by_name["collect:duckdb"]["next_run"] is not None


def test_the_agents_command_says_when_nobody_answers(home: Installation) -> None:
    code, message = home.lakehelm("agents")
    assert code == 3
    assert "lakehelm up" in message


def test_a_reader_cannot_write(home: Installation) -> None:
    home.start()
    with open_store(home.config) as client, pytest.raises(StoreError):
        client.upsert("query_event", to_arrow("query_event", [query_event()]))


def state_of(home: Installation, agent: str) -> dict[str, Any]:
    rows = home.read("FROM agent_state WHERE agent = $agent", agent=agent)
    return rows[0] if rows else {}


def release(pipe: Path) -> None:
    """Let everybody go who waits for a writer of the pipe."""
    with contextlib.suppress(OSError):  # nobody waits
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))


def test_a_source_that_hangs_frees_its_schedule_and_the_process_stops(home: Installation) -> None:
    home.environ |= {"LAKEHELM__COLLECT__DUCKDB__TIMEOUT": "2s"}
    folder = Path(home.config.engines["duckdb"].journal)  # type: ignore[union-attr]
    folder.mkdir(parents=True, exist_ok=True)
    pipe = folder / "9999010100-1.jsonl"
    os.mkfifo(pipe)  # opening it waits for a writer: nothing in the process ends that
    process = home.start()
    until(lambda: state_of(home, "collect:duckdb").get("circuit") in {"open", "half-open"})
    seen = state_of(home, "collect:duckdb")
    assert 1 <= seen["abandoned"] <= 3
    errors = home.read("SELECT error FROM agent_run WHERE agent = 'collect:duckdb'")
    assert any("collect:duckdb#1 is abandoned" in (row["error"] or "") for row in errors)
    assert any("still hang" in (row["error"] or "") for row in errors)
    until(lambda: last_run(home, "probe").get("outcome") == "ok")
    # It comes back: those who hang return, and a run that is asked for closes the circuit.
    pipe.rename(folder / "gone")
    wanted = home.write_journal(3)
    answers: list[tuple[int, Any]] = []

    def is_back() -> bool:
        release(folder / "gone")
        answers.append(home.lakehelm("agents", "run", "collect:duckdb", "--wait"))
        return answers[-1][0] == 0

    until(is_back)
    assert (answers[-1][1]["state"], answers[-1][1]["answer"]) == ("done", "ok")
    assert wanted <= collected(home)
    until(lambda: state_of(home, "collect:duckdb")["circuit"] == "closed")
    # And while it hangs again, the process ends as it should.
    (folder / "gone").rename(pipe)
    until(lambda: last_run(home, "collect:duckdb")["outcome"] == "failed")
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_SECONDS) == 0
    stopped = json.loads(home.log.read_text().splitlines()[-1])
    assert stopped["event"] == "agents.stopped"
    assert any(name.startswith("collect:duckdb#") for name in stopped["abandoned"])
