"""Clients that are programs of their own: Trino's CLI, its JDBC driver, dbt, psql."""

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
    from lakehouse_core.runtime.java import Java
    from tests.integration.gateway.harness import Gateway

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
DBT = ROOT / ".venv-dbt" / "bin" / "dbt"
# Small programs that start often: no time for the second compiler.
_JAVA = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
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


def cli(java: Java, jar: Path, gateway: Gateway, sql: str, user: str = "ana") -> Ran:
    """The CLI, with its rows as CSV."""
    return run(
        [
            str(java.executable), *_JAVA, "-jar", str(jar), "--server", gateway.url, "--user", user,
            "--catalog", "lake", "--schema", "tpch", "--output-format", "CSV_UNQUOTED",
            "--execute", sql,
        ]
    )  # fmt: skip


def psql(gateway: Gateway, sql: str) -> Ran:
    """The interactive terminal of PostgreSQL, with its rows as they are."""
    port = str(gateway.port.postgres_port)
    who = ["-h", "127.0.0.1", "-p", port, "-U", "ana", "lake"]
    return run(["psql", "-X", "-A", "-t", *who, "-c", sql])


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


@dataclass(frozen=True, slots=True)
class Told:
    """What the driver's program tells of a command; every value is its Java text."""

    labels: list[str]
    types: list[str]
    rows: list[list[str]]


class Jdbc:
    """A Java program with one connection; it does as it is told until it is closed."""

    def __init__(self, java: Java, jar: Path, gateway: Gateway) -> None:
        url = gateway.url.replace("http://", "jdbc:trino://") + "/lake/tpch"
        source = HERE / "java" / "TrinoJdbc.java"
        self._process = subprocess.Popen(
            [str(java.executable), *_JAVA, "-cp", str(jar), str(source), url, "ana"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8",
        )  # fmt: skip

    def ask(self, *words: str) -> Told:
        """A command and its arguments."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join(" ".join(w.splitlines()) for w in words) + "\n")
        self._process.stdin.flush()
        told = Told([], [], [])
        for line in self._process.stdout:
            kind, *values = line.rstrip("\n").split("\t")
            match kind:
                case ".":
                    return told
                case "labels":
                    told.labels.extend(values)
                case "types":
                    told.types.extend(values)
                case _:
                    told.rows.append(values)
        raise AssertionError(f"the program ended with {self._process.wait()}")

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()
