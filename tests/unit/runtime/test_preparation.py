"""Before anything starts: tokens, room on the disk, who takes part, the demo lake."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.config import resolve_secret
from lakehouse_core.domain.errors import ConfigError
from lakehouse_core.runtime import preflight
from lakehouse_core.runtime.command import Command
from lakehouse_core.runtime.demo_lake import DemoLakeError, build_demo_lake
from lakehouse_core.runtime.preflight import DiskSpaceError, require_disk, select_engines
from lakehouse_core.runtime.report import PlainReporter
from lakehouse_core.runtime.secrets import ensure_tokens
from tests.unit.runtime.machines import fake_java, machine

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.config import Config


def test_tokens_are_created_once_for_their_owner_only(demo_config: Config) -> None:
    created = ensure_tokens(demo_config)
    assert [path.stat().st_mode & 0o777 for path in created] == [0o600, 0o600, 0o600]
    assert created[0].parent.stat().st_mode & 0o077 == 0
    tokens = [resolve_secret(demo_config.store.writer_token)]
    tokens.append(resolve_secret(demo_config.store.reader_token))
    tokens.append(resolve_secret(demo_config.gateway.ingest_token))
    assert len(set(tokens)) == 3
    assert min(map(len, tokens)) >= 32
    assert ensure_tokens(demo_config) == []
    assert resolve_secret(demo_config.store.writer_token) == tokens[0]


def test_an_engine_without_its_java_is_left_out_with_the_reason(
    demo_config: Config, tmp_path: Path
) -> None:
    home = fake_java(tmp_path / "jdk", "17.0.15")
    here = machine(tmp_path, PATH="/nonexistent", JAVA_HOME=home)
    selection = select_engines(demo_config, here, ())
    assert selection.spark_java is not None
    assert selection.trino_java is None
    assert "Trino needs Java 24 or newer" in selection.skipped["trino"]


def test_engines_can_be_left_out_by_name(demo_config: Config, tmp_path: Path) -> None:
    home = fake_java(tmp_path / "jdk", "25.0.3")
    here = machine(tmp_path, PATH="/nonexistent", JAVA_HOME=home)
    selection = select_engines(demo_config, here, ("trino",))
    assert selection.skipped["trino"] == "left out by --without"
    assert selection.trino_java is None


def test_leaving_out_an_unknown_engine_names_the_known_ones(
    demo_config: Config, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=r"--without trini: no such engine.*duckdb, spark, trino"):
        select_engines(demo_config, machine(tmp_path), ("trini",))


def test_too_little_room_is_told_with_folder_and_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "free_bytes", lambda _: 100 * 2**20)
    with pytest.raises(DiskSpaceError, match=r"home has 100 MiB free, 1024 MiB are needed"):
        require_disk(tmp_path / "home", machine(tmp_path), with_trino=True)


def test_room_is_asked_for_downloads_that_are_still_to_come(tmp_path: Path) -> None:
    here = machine(tmp_path)
    with_trino = preflight.needed_bytes(here, with_trino=True)
    assert with_trino > preflight.needed_bytes(here, with_trino=False) > 60_000_000
    assert preflight.free_bytes(tmp_path / "not" / "there" / "yet") > 0


def job(script: str) -> Command:
    return Command(argv=(sys.executable, "-S", "-c", script))


def test_progress_of_the_demo_lake_is_passed_on(tmp_path: Path) -> None:
    said: list[str] = []
    lines = ("progress 1/2 a", "progress x/2", "progress 1/0", "WARN progress", "progress 2/2 b")
    script = f"print({chr(10).join(lines)!r})"
    build_demo_lake(job(script), {}, tmp_path / "demo.log", PlainReporter(said.append))
    assert said == ["Demo lake: 50 %", "Demo lake: 100 %"]


def test_a_failed_demo_lake_ends_with_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(DemoLakeError, match=r"exit code 3(.|\n)*no space"):
        build_demo_lake(
            job("print('no space'); raise SystemExit(3)"),
            {},
            tmp_path / "demo.log",
            PlainReporter(lambda _: None),
        )


def test_progress_without_a_terminal_is_a_line_now_and_then() -> None:
    now = [0.0]
    said: list[str] = []
    reporter = PlainReporter(said.append, lambda: now[0])
    for second in range(25):
        now[0] = float(second)
        reporter.progress("file", second, 25)
    reporter.progress("file", 25, 25)
    assert said == ["file: 0 %", "file: 40 %", "file: 80 %", "file: 100 %"]


def test_progress_that_does_not_move_is_told_once() -> None:
    now = [0.0]
    said: list[str] = []
    reporter = PlainReporter(said.append, lambda: now[0])
    for second in range(0, 60, 5):
        now[0] = float(second)
        reporter.progress("Starting", 2, 3)
    reporter.progress("Starting", 3, 3)
    assert said == ["Starting: 67 %", "Starting: 100 %"]
