"""Only logs that ended, were read to their end, and are old enough are ever removed."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from collectors.spark.config import event_log_settings
from collectors.spark.retention import drop_read_logs, engines_with_logs
from collectors.spark.source import EventLogSource
from collectors.understanding import Understanding
from lakehouse_core.config.models import SparkEngine
from tests.factories import NOW

if TYPE_CHECKING:
    from lakehouse_core.config import Config

FIXTURES = Path(__file__).parents[3] / "integration" / "fixtures"
OLD = (NOW - timedelta(days=8)).timestamp()
FRESH = (NOW - timedelta(days=6)).timestamp()


def engine(folder: Path, **given: object) -> SparkEngine:
    values = {"type": "spark", "catalog": "lake", "managed": True, "event_log": folder, **given}
    return SparkEngine.model_validate(values)


def read(folder: Path) -> str:
    settings = replace(event_log_settings("spark", engine(folder)), one_at_a_time=False)
    source = EventLogSource(settings, Understanding(), lambda: NOW)
    marks = [batch.watermark for batch in source.pull(None)]
    assert marks[-1] is not None
    return marks[-1].position


def age(path: Path, moment: float) -> None:
    for file in [*path.rglob("*"), path]:
        os.utime(file, (moment, moment))


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A rolling log, a finished one, and one in progress; all old."""
    folder = tmp_path / "logs"
    shutil.copytree(FIXTURES / "spark", folder)
    shutil.copy(FIXTURES / "spark-classic" / "local-1794815130398", folder / "app-done")
    shutil.copy(FIXTURES / "spark-classic" / "local-1794815130398", folder / "app-2.inprogress")
    age(folder, OLD)
    os.utime(folder / "app-2.inprogress", (OLD + 1, OLD + 1))
    return folder


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_old_logs_that_were_read_are_removed_and_one_in_progress_is_not(logs: Path) -> None:
    position = read(logs)
    assert drop_read_logs(engine(logs), position, NOW) == 2
    assert names(logs) == {"app-2.inprogress"}
    assert drop_read_logs(engine(logs), position, NOW) == 0


def test_nothing_that_was_not_read_is_removed(logs: Path) -> None:
    position = read(logs)
    unread = logs / "app-unread"
    shutil.copy(logs / "app-done", unread)
    os.utime(unread, (OLD, OLD))
    drop_read_logs(engine(logs), position, NOW)
    assert unread.exists()
    assert drop_read_logs(engine(logs), None, NOW) == 0


def test_a_log_that_grew_after_it_was_read_stays(logs: Path) -> None:
    position = read(logs)
    os.utime(logs / "app-done", (OLD + 60, OLD + 60))
    drop_read_logs(engine(logs), position, NOW)
    assert "app-done" in names(logs)


def test_a_young_log_stays(logs: Path) -> None:
    age(logs, FRESH)
    before = names(logs)
    assert drop_read_logs(engine(logs), read(logs), NOW) == 0
    assert names(logs) == before
    assert drop_read_logs(engine(logs, event_log_keep="5d"), read(logs), NOW) == 2


def test_a_folder_that_is_not_there_is_nothing_to_do(tmp_path: Path) -> None:
    assert drop_read_logs(engine(tmp_path / "nowhere"), '{"v":1,"apps":{},"horizon":0}', NOW) == 0


def test_logs_of_servers_that_others_run_are_left_alone(demo_config: Config) -> None:
    assert [name for name, _ in engines_with_logs(demo_config)] == ["spark"]
    for change in ({"managed": False}, {"history_server": "http://h:18080"}):
        spark = demo_config.engines["spark"].model_copy(update=change)
        changed = demo_config.model_copy(update={"engines": {"spark": spark}})
        assert list(engines_with_logs(changed)) == []
