"""Running the command line inside the test."""

from __future__ import annotations

import contextvars
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from lakehouse_core.cli import main

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


class Run(Protocol):
    """Runs `lakehelm` with these arguments."""

    def __call__(self, *args: str) -> Finished: ...


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("COLUMNS", "160")

    def run(*args: str) -> Finished:
        with pytest.raises(SystemExit) as ended:
            contextvars.copy_context().run(main, args)
        captured = capsys.readouterr()
        return Finished(int(ended.value.code or 0), captured.out, captured.err)

    return run


@pytest.fixture
def good_config(tmp_path: Path) -> str:
    path = tmp_path / "good.yaml"
    path.write_text(
        "version: 1\n"
        "catalogs: {lake: {type: sqlite, path: c.db, warehouse: w}}\n"
        "engines: {duckdb: {type: duckdb, catalog: lake}}\n"
    )
    return str(path)


@pytest.fixture
def bad_config(tmp_path: Path, good_config: str) -> str:
    path = tmp_path / "bad.yaml"
    with open(good_config, encoding="utf-8") as good:  # noqa: PTH123 the fixture is a text
        path.write_text(good.read() + "ui: {prot: 1}\nlogging: {level: loud}\n")
    return str(path)
