"""A command line together with what it needs to run."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 dataclass fields are read at run time
from dataclasses import dataclass, field
from pathlib import Path  # noqa: TC003 as above


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What to start: arguments, variables on top of the machine's, folder to start in."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
