"""Reads the golden pairs: a case is a name, a dialect, a statement, and what is expected of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "golden"


@dataclass(frozen=True, slots=True)
class Case:
    """One pair; what is expected stands in comments after the statement, but for the template."""

    name: str
    dialect: str
    sql: str
    template: str = ""
    expected: list[str] = field(default_factory=list)


def cases(file: str) -> list[Case]:
    """The cases of a file."""
    return [_case(block) for block in (FOLDER / file).read_text().split("-- case: ")[1:]]


def _case(block: str) -> Case:
    name, dialect, *rest = block.strip().splitlines()
    end = next(i for i, line in enumerate(rest) if line.startswith(("-- template:", "-- tables:")))
    expected = rest[end:]
    template = expected[1] if expected[0] == "-- template:" else ""
    comments = [line.removeprefix("-- ") for line in expected if line.startswith("-- ")]
    return Case(
        name=name,
        dialect=dialect.removeprefix("-- dialect: "),
        sql="\n".join(rest[:end]),
        template=template,
        expected=[line for line in comments if line != "template:"],
    )
