"""The lock gate: requirements.txt pins every dependency of pyproject.toml as it asks.

Fails with the remedy (`make lock`) when somebody changed the one without the other.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def pins(text: str) -> dict[str, str]:
    """Package → pinned version, of the text of a requirements file."""
    lines = (line.split("#")[0].strip() for line in text.splitlines())
    found = (line.split(";")[0].split("==") for line in lines if "==" in line)
    return {canonicalize_name(name.strip()): version.strip() for name, version in found}


def check(pyproject: str, requirements: str) -> list[str]:
    """What does not agree between the texts of both files."""
    project = tomllib.loads(pyproject)["project"]
    wanted = [*project["dependencies"]]
    for extra in project.get("optional-dependencies", {}).values():
        wanted += extra
    pinned = pins(requirements)
    problems = []
    for requirement in map(Requirement, wanted):
        version = pinned.get(canonicalize_name(requirement.name))
        if version is None:
            problems.append(f"{requirement} is not in requirements.txt")
        elif not requirement.specifier.contains(version, prereleases=True):
            problems.append(f"{requirement} does not allow the pinned {version}")
    return problems


def main() -> int:
    """Print the disagreements; 1 when there are any."""
    problems = check(
        Path("pyproject.toml").read_text(encoding="utf-8"),
        Path("requirements.txt").read_text(encoding="utf-8"),
    )
    for problem in problems:
        print(f"error: {problem}; run `make lock`")
    print(f"lock: {len(problems)} disagreements between pyproject.toml and requirements.txt")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
