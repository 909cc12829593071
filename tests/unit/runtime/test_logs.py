"""Logs stay within their bound, whatever the disk says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.runtime import logs

if TYPE_CHECKING:
    from pathlib import Path


def test_a_log_that_grew_too_large_is_emptied_after_a_copy(tmp_path: Path) -> None:
    log = tmp_path / "p.log"
    with log.open("ab") as writer:  # as a process that keeps writing
        writer.write(b"x" * 100)
        writer.flush()
        assert logs.bound(log, max_bytes=99) is None
        writer.write(b"after")
    assert log.read_bytes() == b"after"
    assert (tmp_path / "p.log.1").read_bytes() == b"x" * 100
    assert logs.bound(log, max_bytes=99) is None
    assert log.read_bytes() == b"after"
    assert logs.bound(tmp_path / "none.log") is None


def test_a_log_that_cannot_be_copied_is_emptied_all_the_same_and_told(tmp_path: Path) -> None:
    log = tmp_path / "agents.log"
    log.write_text("x" * 11)
    (tmp_path / "agents.log.1").mkdir()
    said = logs.bound(log, max_bytes=10)
    assert said is not None
    assert "without a copy" in said
    assert str(log) in said
    assert log.read_text() == ""


def test_the_tail_of_a_log_survives_bytes_that_are_no_text(tmp_path: Path) -> None:
    log = tmp_path / "p.log"
    log.write_bytes(b"\xff\xfe\n" * 5_000 + b"last\n")
    assert logs.tail(log, 2).endswith("last")
    assert logs.tail(tmp_path / "none.log") == ""
