"""Logs as they lie on disk: in progress, finished, rolled, compacted, damaged, abandoned."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import zstandard

from collectors.spark.config import EventLogSettings
from collectors.spark.position import SparkPosition
from collectors.spark.source import EventLogSource
from collectors.understanding import Understanding
from lakehouse_core.domain.errors import SourceError
from lakehouse_core.domain.query import EngineId
from tests.factories import NOW

if TYPE_CHECKING:
    from lakehouse_core.domain.agent import DeadLetter, Watermark

FIXTURES = Path(__file__).parents[3] / "integration" / "fixtures"
APP = "local-1794809855121"


class Reader:
    """Pulls again and again, and keeps the newest row of each query."""

    def __init__(self, folder: Path, **changes: Any) -> None:
        settings = EventLogSettings(engine_id=EngineId("spark"), folder=folder, batch_bytes=20_000)
        self._settings = replace(settings, **changes)
        self._mark: Watermark | None = None
        self.rows: dict[str, dict[str, Any]] = {}
        self.letters: list[DeadLetter] = []
        self.seen = 0

    def pull(self) -> int:
        self.seen = 0
        for batch in EventLogSource(self._settings, Understanding(), lambda: NOW).pull(self._mark):
            if "query_event" in batch.rows:
                for row in batch.rows["query_event"].to_pylist():
                    self.rows[row["query_id"]] = row
                    self.seen += 1
            self.letters += batch.dead_letters
            self._mark = batch.watermark
        return self.seen

    @property
    def position(self) -> dict[str, Any]:
        assert self._mark is not None
        return dict(json.loads(self._mark.position))

    def facts(self) -> dict[str, tuple[Any, ...]]:
        names = ("status", "sql_text", "bytes_scanned", "cpu_ms", "rows_written", "ended_at")
        return {key: tuple(row[n] for n in names) for key, row in self.rows.items()}


@pytest.fixture(scope="module")
def frames() -> list[bytes]:
    """The recorded log, flush by flush."""
    (file,) = (FIXTURES / "spark").glob("*/events_1_*.zstd")
    data = file.read_bytes()
    found: list[bytes] = []
    while data:
        frame = zstandard.ZstdDecompressor().decompressobj()
        frame.decompress(data)
        found.append(data[: len(data) - len(frame.unused_data)])
        data = frame.unused_data
    return found


@pytest.fixture(scope="module")
def expected() -> dict[str, tuple[Any, ...]]:
    reader = Reader(FIXTURES / "spark")
    reader.pull()
    assert len(reader.rows) == 15
    return reader.facts()


@pytest.fixture(scope="module")
def half(frames: list[bytes]) -> bytes:
    """The log up to a moment at which a query runs."""
    for number, frame in enumerate(frames):
        text = zstandard.ZstdDecompressor().decompressobj().decompress(frame)
        if b"SparkListenerStageSubmitted" in text:
            return b"".join(frames[: number + 1])
    raise AssertionError("no stage in the recorded log")


def app_folder(root: Path, name: str = APP) -> Path:
    folder = root / f"eventlog_v2_{name}"
    folder.mkdir(parents=True)
    return folder


def test_a_log_over_several_files_is_one_log(
    tmp_path: Path, frames: list[bytes], expected: dict[str, tuple[Any, ...]]
) -> None:
    folder = app_folder(tmp_path)
    third = len(frames) // 3
    for number in range(3):
        part = frames[number * third : (number + 1) * third if number < 2 else None]
        (folder / f"events_{number + 1}_{APP}.zstd").write_bytes(b"".join(part))
    (folder / f"appstatus_{APP}").touch()
    reader = Reader(tmp_path)
    reader.pull()
    assert reader.facts() == expected
    assert reader.letters == []


def test_a_log_that_grows_and_rolls_between_looks_loses_nothing(
    tmp_path: Path, frames: list[bytes], expected: dict[str, tuple[Any, ...]]
) -> None:
    folder = app_folder(tmp_path)
    (folder / f"appstatus_{APP}.inprogress").touch()
    reader = Reader(tmp_path)
    for number, frame in enumerate(frames):
        file = folder / f"events_{1 + number // 100}_{APP}.zstd"
        with file.open("ab") as log:
            log.write(frame[: len(frame) // 2])
        if number % 7 == 0:
            reader.pull()
        with file.open("ab") as log:
            log.write(frame[len(frame) // 2 :])
        if number % 5 == 0:
            reader.pull()
    (folder / f"appstatus_{APP}.inprogress").rename(folder / f"appstatus_{APP}")
    reader.pull()
    assert reader.facts() == expected
    assert reader.letters == []
    assert reader.pull() == 0


def test_a_finished_log_is_not_opened_again(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "spark", tmp_path / "logs")
    reader = Reader(tmp_path / "logs")
    reader.pull()
    for file in (tmp_path / "logs").glob("*/events_*"):
        moment = file.stat()
        file.write_bytes(b"garbage")
        os.utime(file, (moment.st_atime, moment.st_mtime))
    assert reader.pull() == 0
    assert reader.letters == []


def test_applications_without_spark_connect_are_read_too() -> None:
    reader = Reader(FIXTURES / "spark-classic")
    reader.pull()
    texts = [row["sql_text"] for row in reader.rows.values()]
    assert texts == [
        None,
        None,
        None,
        None,
        "SELECT count(*) FROM range(100)",
        "SELECT 'x' AS token",
    ]
    job = reader.rows["local-1794815071210:0"]
    assert (job["user_name"], job["source"], job["status"]) == ("spark", "nightly load", "finished")
    failed = reader.rows["local-1794815071210:4"]
    assert (failed["status"], failed["error_code"]) == ("failed", "USER_RAISED_EXCEPTION")


def test_the_position_stays_small_however_many_applications_there_were(tmp_path: Path) -> None:
    source = FIXTURES / "spark-classic" / "local-1794815130398"
    for number in range(12):
        copy = tmp_path / f"app-{number:02}"
        shutil.copy(source, copy)
        os.utime(copy, (1_000 + number, 1_000 + number))
    reader = Reader(tmp_path, remembered_apps=3)
    reader.pull()
    assert len(reader.position["apps"]) == 3
    assert reader.pull() == 0


def test_files_compacted_before_they_were_read_are_a_gap(
    tmp_path: Path, frames: list[bytes]
) -> None:
    folder = app_folder(tmp_path)
    (folder / f"appstatus_{APP}.inprogress").touch()
    first = folder / f"events_1_{APP}.zstd"
    first.write_bytes(b"".join(frames[:50]))
    reader = Reader(tmp_path)
    reader.pull()
    before = dict(reader.rows)
    first.unlink()
    (folder / f"events_3_{APP}.zstd.compact").write_bytes(b"".join(frames[:50]))
    (folder / f"events_4_{APP}.zstd").write_bytes(b"".join(frames[120:]))
    reader.pull()
    assert ["files 1 to 3 were compacted" in letter.reason for letter in reader.letters] == [True]
    finished = [key for key, row in before.items() if row["status"] == "finished"]
    assert finished
    for key in finished:  # what was known is not replaced by the poorer copy
        assert reader.rows[key]["bytes_scanned"] == before[key]["bytes_scanned"]
    letters = len(reader.letters)
    reader.pull()
    assert len(reader.letters) == letters


def test_damage_in_the_middle_costs_its_events_and_no_more(
    tmp_path: Path, frames: list[bytes]
) -> None:
    folder = app_folder(tmp_path)
    (folder / f"appstatus_{APP}").touch()
    damaged = [*frames[:100], b"\x00\x01\x02damaged", *frames[100:]]
    (folder / f"events_1_{APP}.zstd").write_bytes(b"".join(damaged))
    reader = Reader(tmp_path)
    reader.pull()
    assert ["cannot be decompressed" in letter.reason for letter in reader.letters] == [True]
    assert len(reader.rows) == 15


def test_a_tail_that_was_never_finished_is_told_when_the_application_is_over(
    tmp_path: Path, frames: list[bytes]
) -> None:
    folder = app_folder(tmp_path)
    (folder / f"appstatus_{APP}.inprogress").touch()
    blob = b"".join(frames)
    (folder / f"events_1_{APP}.zstd").write_bytes(blob[:-20])
    reader = Reader(tmp_path)
    reader.pull()
    assert reader.letters == []
    (folder / f"appstatus_{APP}.inprogress").rename(folder / f"appstatus_{APP}")
    reader.pull()
    assert ["never finished" in letter.reason for letter in reader.letters] == [True]


def test_another_compression_is_told_with_what_to_set(tmp_path: Path) -> None:
    (tmp_path / "app-1.lz4").write_bytes(b"LZ4Block")
    reader = Reader(tmp_path)
    reader.pull()
    assert "compression.codec=zstd" in reader.letters[0].reason


def test_a_server_that_was_killed_leaves_no_query_running_once_the_next_one_is_up(
    tmp_path: Path, frames: list[bytes], half: bytes
) -> None:
    dead = app_folder(tmp_path)
    (dead / f"appstatus_{APP}.inprogress").touch()
    log = dead / f"events_1_{APP}.zstd"
    log.write_bytes(half)
    os.utime(log, (1_000, 1_000))
    reader = Reader(tmp_path, one_at_a_time=True)
    reader.pull()
    assert [r["sql_text"][:6] for r in reader.rows.values() if r["status"] == "running"] == [
        "INSERT"
    ]
    successor = app_folder(tmp_path, "local-2")
    (successor / "appstatus_local-2.inprogress").touch()
    (successor / "events_1_local-2.zstd").write_bytes(frames[0])
    reader.pull()
    assert [r for r in reader.rows.values() if r["status"] == "running"] == []
    (lost,) = [r for r in reader.rows.values() if r["status"] == "failed"]
    assert "ended before this query did" in lost["error_message"]


def test_without_that_promise_an_old_application_may_still_run(tmp_path: Path, half: bytes) -> None:
    old = app_folder(tmp_path)
    (old / f"appstatus_{APP}.inprogress").touch()
    log = old / f"events_1_{APP}.zstd"
    log.write_bytes(half)
    os.utime(log, (1_000, 1_000))
    (tmp_path / "other.inprogress").write_bytes(b"")
    reader = Reader(tmp_path, one_at_a_time=False)
    reader.pull()
    assert [r for r in reader.rows.values() if r["status"] == "running"]


@pytest.mark.parametrize("text", ["", "{}", '{"v":2}', '{"v":1,"apps":3,"horizon":0}'])
def test_a_position_of_somebody_else_is_refused_with_a_way_out(text: str) -> None:
    with pytest.raises(SourceError, match="watermark"):
        SparkPosition.parse(text)


def plain_log(folder: Path, *lines: bytes) -> None:
    (folder / "app-1").write_bytes(b"".join(line + b"\n" for line in lines))


def operation(what: str, number: int, **more: Any) -> bytes:
    name = f"org.apache.spark.sql.connect.service.SparkListenerConnectOperation{what}"
    event = {"Event": name, "eventTime": 1_000 + number, "operationId": f"op-{number}", **more}
    return json.dumps(event, separators=(",", ":")).encode()


def whole(number: int, sql: str = "SELECT 1") -> list[bytes]:
    text = f'common {{\n}}\nsql {{\n  query: "{sql}"\n}}\n'
    return [
        operation("Started", number, statementText=text),
        operation("Finished", number, producedRowCount=1),
        operation("Closed", number),
    ]


@pytest.mark.parametrize(
    "line",
    [
        b'{"Event":"org.example.SomethingNew","a":[1,2,{"b":null}]}',
        b'{"Event":"SparkListenerNotYetInvented","Stage ID":"x"}',
        b'{"Event":"SparkListenerBlockUpdated","broken": \xff\xfe}',  # not wanted, so not looked at
        b"",
    ],
)
def test_events_of_unknown_kinds_are_stepped_over(tmp_path: Path, line: bytes) -> None:
    plain_log(tmp_path, *whole(1), line, *whole(2))
    reader = Reader(tmp_path)
    reader.pull()
    assert sorted(reader.rows) == ["op-1", "op-2"]
    assert reader.letters == []


@pytest.mark.parametrize(
    "line",
    [
        operation("Started", 9, statementText="x").replace(b'"x"', b'"\xff\xfe"'),  # no UTF-8
        operation("Started", 9)[:-20],  # torn
        b'{"Event":"SparkListenerTaskEnd"}',
        b'{"Event":"SparkListenerTaskEnd","Stage ID":1,"Task Metrics":{"Executor CPU Time":"x"}}',
        b"[]",
        b"\x00\x01",
    ],
)
def test_a_line_that_cannot_be_understood_is_a_letter_and_stops_nothing(
    tmp_path: Path, line: bytes
) -> None:
    plain_log(tmp_path, *whole(1), line, *whole(2))
    reader = Reader(tmp_path)
    reader.pull()
    assert sorted(reader.rows) == ["op-1", "op-2"]
    assert len(reader.letters) == 1


def test_a_statement_of_which_spark_logged_a_part_is_kept_as_a_part(tmp_path: Path) -> None:
    plain_log(tmp_path, *whole(1, f"SELECT {'1' * 65_000}[truncated(size=5,000,000)]"))
    reader = Reader(tmp_path)
    reader.pull()
    text = reader.rows["op-1"]["sql_text"]
    assert text.startswith("SELECT 111")
    assert text.endswith("of 5000000 characters")
