from __future__ import annotations

import os
from typing import TYPE_CHECKING

from collectors.spark.layout import list_apps

if TYPE_CHECKING:
    from pathlib import Path


def put(folder: Path, *names: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_bytes(b"")


def test_a_rolling_log_has_its_files_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    put(
        tmp_path / "eventlog_v2_app-1",
        "events_10_app-1.zstd",
        "events_2_app-1.zstd",
        "events_1_app-1",
        "appstatus_app-1.inprogress",
        ".appstatus_app-1.inprogress.crc",
    )
    (app,) = list_apps(tmp_path)
    assert app.name == "app-1"
    assert [f.index for f in app.files] == [1, 2, 10]
    assert [f.codec for f in app.files] == [None, "zstd", "zstd"]
    assert not app.is_complete


def test_a_log_is_complete_when_its_status_says_so(tmp_path: Path) -> None:
    put(tmp_path / "eventlog_v2_app-1", "events_1_app-1.zstd", "appstatus_app-1")
    assert list_apps(tmp_path)[0].is_complete


def test_a_compacted_file_stands_for_the_files_up_to_its_number(tmp_path: Path) -> None:
    put(
        tmp_path / "eventlog_v2_app-1",
        "events_1_app-1.zstd",
        "events_2_app-1.zstd",
        "events_2_app-1.zstd.compact",
        "events_3_app-1.zstd",
        "appstatus_app-1",
    )
    (app,) = list_apps(tmp_path)
    assert [(f.index, f.is_compacted) for f in app.files] == [(2, True), (3, False)]
    assert app.files[0].codec == "zstd"


def test_single_files_keep_their_name_when_they_are_finished(tmp_path: Path) -> None:
    put(tmp_path, "app-1.zstd.inprogress", "app-2", "app-3.lz4", ".app-4.crc")
    apps = {app.name: app for app in list_apps(tmp_path)}
    assert set(apps) == {"app-1", "app-2", "app-3"}
    assert not apps["app-1"].is_complete
    assert apps["app-1"].files[0].codec == "zstd"
    assert apps["app-2"].is_complete
    assert apps["app-2"].files[0].codec is None
    assert apps["app-3"].files[0].codec == "lz4"


def test_the_log_that_was_changed_longest_ago_comes_first(tmp_path: Path) -> None:
    put(tmp_path, "new", "old")
    os.utime(tmp_path / "old", (1_000, 1_000))
    assert [app.name for app in list_apps(tmp_path)] == ["old", "new"]


def test_folders_of_others_are_left_alone(tmp_path: Path) -> None:
    put(tmp_path / "something", "events_1_x.zstd")
    assert list_apps(tmp_path) == []
