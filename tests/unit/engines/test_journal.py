"""DuckDB's journal: what the collector will read."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING

from lakehouse_core.domain.query import QueryStatus
from lakehouse_core.engines.duckdb.journal import KEPT, Journal
from tests.disk import files_of_at_most
from tests.factories import NOW, query_event

if TYPE_CHECKING:
    from pathlib import Path


def test_an_event_is_a_line_in_the_file_of_its_hour_and_process(tmp_path: Path) -> None:
    event = query_event(status=QueryStatus.FAILED, error_message="Zoë's table\nis gone")

    assert Journal(tmp_path, lambda: NOW).write(event)

    (line,) = (tmp_path / f"2026111612-{os.getpid()}.jsonl").read_text().splitlines()
    written = json.loads(line)
    assert written["query_id"] == event.query_id
    assert written["status"] == "failed"
    assert written["error_message"] == "Zoë's table\nis gone"
    assert written["submitted_at"] == event.submitted_at.isoformat()


def test_what_is_not_known_is_not_written(tmp_path: Path) -> None:
    Journal(tmp_path, lambda: NOW).write(query_event(bytes_scanned=None, rows_returned=0))

    (file,) = tmp_path.iterdir()
    written = json.loads(file.read_text())
    assert "bytes_scanned" not in written
    assert written["rows_returned"] == 0


def test_lines_of_many_threads_stay_whole(tmp_path: Path) -> None:
    journal = Journal(tmp_path, lambda: NOW)
    events = [query_event(sql_text="x" * 10_000) for _ in range(50)]

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(journal.write, events))

    (file,) = tmp_path.iterdir()
    ids = [json.loads(line)["query_id"] for line in file.read_text().splitlines()]
    assert sorted(ids) == sorted(event.query_id for event in events)


def test_a_new_hour_is_a_new_file_and_old_ones_go(tmp_path: Path) -> None:
    now = NOW
    old = tmp_path / f"{(NOW - KEPT - timedelta(hours=2)).strftime('%Y%m%d%H')}-1.jsonl"
    other = tmp_path / f"{(NOW - timedelta(days=1)).strftime('%Y%m%d%H')}-1.jsonl"
    for file in (old, other):
        file.write_text("{}\n")
    journal = Journal(tmp_path, lambda: now)

    journal.write(query_event())
    now = NOW + timedelta(hours=1)
    journal.write(query_event())

    pid = os.getpid()
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        other.name,
        f"2026111612-{pid}.jsonl",
        f"2026111613-{pid}.jsonl",
    ]


def test_a_disk_that_refuses_is_told_and_fails_nothing(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")

    assert not Journal(blocked / "folder", lambda: NOW).write(query_event())


def test_a_disk_that_takes_half_a_line_keeps_none_of_it(tmp_path: Path) -> None:
    journal = Journal(tmp_path, lambda: NOW)
    first, second, third = (query_event(sql_text="x" * 600_000) for _ in range(3))

    with files_of_at_most(1_000_000):
        assert journal.write(first)
        assert not journal.write(second)
    assert journal.write(third)

    (file,) = tmp_path.iterdir()
    ids = [json.loads(line)["query_id"] for line in file.read_text().splitlines()]
    assert ids == [first.query_id, third.query_id]
