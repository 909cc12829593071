"""DuckDB with extensions from wheels, and from nowhere else."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import duckdb
import pytest

from lakehouse_core import duck
from lakehouse_core.domain.errors import NotInstalledError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
def test_extensions_are_loaded_with_what_they_need() -> None:
    with duck.connect(extensions=("iceberg", "quack", "tpch")) as connection:
        loaded = connection.execute(
            "SELECT extension_name FROM duckdb_extensions() WHERE loaded"
        ).fetchall()
    assert {"avro", "iceberg", "httpfs", "quack", "tpch"} <= {name for (name,) in loaded}


def test_nothing_is_downloaded_and_unsigned_code_is_refused(tmp_path: Path) -> None:
    fake = tmp_path / "evil.duckdb_extension"
    fake.write_bytes(b"\x7fELF" + b"\0" * 4096)
    with duck.connect() as connection:
        with pytest.raises(duckdb.Error):
            connection.execute("SELECT * FROM read_xlsx('x.xlsx')")
        with pytest.raises(duckdb.Error):
            connection.load_extension(str(fake))
        with pytest.raises(duckdb.Error):
            connection.execute("SET allow_unsigned_extensions = true")


def test_a_missing_extension_says_what_to_install() -> None:
    with pytest.raises(NotInstalledError, match=r"pip install duckdb-extension-nope==1\.5\.5"):
        duck.connect(extensions=("nope",))


def test_a_wheel_of_another_release_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "duckdb_extension_stale"
    (package / "extensions" / "v0.0.1").mkdir(parents=True)
    (package / "__init__.py").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with pytest.raises(NotInstalledError, match="no binary for DuckDB"):
        duck.extension_path("stale")


def test_the_session_speaks_utc() -> None:
    with duck.connect() as connection:
        row = connection.execute("SELECT TIMESTAMPTZ '2026-11-16 00:00:00+02'::VARCHAR").fetchone()
    assert row == ("2026-11-15 22:00:00+00",)


def test_slow_statement_draws_nothing_where_answers_are_printed() -> None:
    # Whatever has no file, DuckDB takes for a person at a prompt.
    program = (
        "from lakehouse_core import duck\n"
        "opened = duck.connect()\n"
        "print(opened.execute(\"SELECT current_setting('enable_progress_bar')\").fetchone())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "(False,)\n"
