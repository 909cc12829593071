"""What is wrong with a configuration: where, which key, which value, what is allowed instead."""

from __future__ import annotations

import difflib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from lakehouse_core.domain.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

KeyPath = tuple[str | int, ...]
MASK = "********"
_LONGEST_VALUE = 80
_SECRET_WORDS = ("password", "passwd", "secret", "token", "credential", "credentials", "key")
_EMPTY_PATH = "(whole file)"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value came from; `str()` is what people read.

    Attributes:
        kind: `file`, `variable` (a `${VAR}` in the file), `environment` (an override), `default`.
        place: the file and line, or the name of the override variable; empty for a default.
        variables: the variables that were put into the text.
    """

    kind: Literal["file", "variable", "environment", "default"]
    place: str = ""
    variables: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.kind == "default":
            return "default"
        if self.variables:
            return f"{self.place} ({', '.join(self.variables)})"
        return self.place


DEFAULT = Origin("default")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing to put right."""

    place: str
    key: str
    message: str
    value: str | None = None  # as it may be shown: short, and masked when secret
    allowed: str | None = None
    nearest: str | None = None

    def __str__(self) -> str:
        subject = f"{self.place}: {self.key}" if self.key else self.place
        if self.value is not None:
            subject += f" = {self.value}"
        text = f"{subject}: {self.message}"
        if self.nearest:
            text += f"; did you mean {self.nearest}?"
        if self.allowed:
            text += f" (allowed: {self.allowed})"
        return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A problem found by a check, before it is given a place in the file."""

    path: KeyPath
    message: str
    allowed: str | None = None
    nearest: str | None = None


class InvalidConfigError(ConfigError):
    """Raised when a configuration file was found but does not hold; carries every problem."""

    def __init__(self, file: str, problems: Sequence[Problem]) -> None:
        self.file = file
        self.problems = tuple(problems)
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        lines = [f"{file}: {count} in the configuration", *(f"  {p}" for p in problems)]
        super().__init__("\n".join(lines))


def dotted(path: KeyPath) -> str:
    """A key path as people write it; names with dots in them are bracketed."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif "." in part:
            text += f'["{part}"]'
        else:
            text += f".{part}" if text else part
    return text or _EMPTY_PATH


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that `word` was most likely meant to be."""
    candidates = {k.lower(): k for k in known}
    hits = difflib.get_close_matches(word.lower().replace("-", "_"), candidates, n=1, cutoff=0.6)
    return candidates[hits[0]] if hits else None


def looks_secret(name: str) -> bool:
    """Whether a key of this name most likely holds a secret."""
    words = re.findall(r"[a-z0-9]+", name.lower())
    return any(word.endswith(_SECRET_WORDS) for word in words)


def shown(value: object, *, secret: bool = False) -> str:
    """A value fit for a message: masked when secret, one short line otherwise."""
    if secret:
        return MASK
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
