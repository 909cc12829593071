"""Configurations as texts."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import pytest

from lakehouse_core.config import Loaded, load_config

# The smallest configuration that holds; tests add the part they are about.
BASE = """\
version: 1
catalogs:
  lake: {type: sqlite, path: lake/catalog.db, warehouse: lake/warehouse}
engines:
  duckdb: {type: duckdb, catalog: lake}
  trino: {type: trino, catalog: lake}
"""


class Load(Protocol):
    """Writes a text as config/test.yaml below the test's folder and loads it."""

    def __call__(self, text: str | bytes, **environ: str) -> Loaded: ...


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    monkeypatch.chdir(tmp_path)  # messages then name the file as a user would

    def load(text: str | bytes, **environ: str) -> Loaded:
        path = Path("config/test.yaml")
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return load_config(path, environ)

    return load
