"""Clients that are programs of their own: dbt."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.integration.gateway.harness import Gateway

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
DBT = ROOT / ".venv-dbt" / "bin" / "dbt"
PATIENCE_SECONDS = 240


@dataclass(frozen=True, slots=True)
class Ran:
    """What a program said."""

    code: int
    out: str
    err: str


def run(command: list[str], **variables: str) -> Ran:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS,
        env={**os.environ, **variables},
    )  # fmt: skip
    return Ran(done.returncode, done.stdout, done.stderr)


def dbt(gateway: Gateway, schema: str, folder: Path, *arguments: str) -> Ran:
    """A command of dbt on its project, which is copied: dbt writes beside it."""
    if not DBT.exists():
        pytest.skip("dbt is not installed: run `make dbt` (its own environment)")
    project = folder / "project"
    shutil.copytree(ROOT / "tests" / "dbt" / "project", project, dirs_exist_ok=True)
    return run(
        [str(DBT), "--no-use-colors", *arguments, "--project-dir", str(project),
         "--profiles-dir", str(project)],
        GATEWAY_PORT=str(gateway.port.port), GATEWAY_SCHEMA=schema,
    )  # fmt: skip


def dbt_results(folder: Path) -> dict[str, str]:
    """How each node of the last command ended."""
    path = folder / "project" / "target" / "run_results.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return {one["unique_id"].split(".")[2]: one["status"] for one in found["results"]}
