"""The room travels alone: Spark executors get it with nothing but sqlglot and the domain."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import sqlglot.parser
import sqlglot.tokenizer_core

PROBE = """
import sys
from lakehouse_core.sql import inspect
assert inspect("SELECT a FROM t", "spark").tables == ("t",)
print("\\n".join(sorted(sys.modules)))
"""


@pytest.mark.slow
def test_imports_nothing_but_sqlglot_and_the_domain(repository: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-S", "-c", PROBE],
        cwd=repository,
        env={"PYTHONPATH": f"{repository}:{Path(sqlglot.__file__).parents[1]}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    foreign = {
        name
        for name in ended.stdout.split()
        if name.split(".")[0] not in sys.stdlib_module_names
        and not name.startswith(("sqlglot", "lakehouse_core.sql", "lakehouse_core.domain"))
        and "mypyc" not in name  # the compiled half of sqlglot, and what it is compiled with
    }
    assert foreign <= {"__main__", "lakehouse_core", "mypy_extensions"}


def test_sqlglot_is_the_compiled_one() -> None:
    assert sqlglot.parser.__file__.endswith(".so")
    assert sqlglot.tokenizer_core.__file__.endswith(".so")
