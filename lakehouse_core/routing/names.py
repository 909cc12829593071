"""Qualified names taken apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def name_parts(name: str) -> tuple[str, ...]:
    """The parts of a qualified name in lower case; quotes may hold dots."""
    if '"' not in name:
        return tuple(name.lower().split("."))
    return tuple(_parts(name))


def _parts(name: str) -> Iterator[str]:
    part, is_quoted, at = "", False, 0
    while at < len(name):
        character = name[at]
        if is_quoted and name[at : at + 2] in ('""', '\\"'):
            part, at = part + '"', at + 1
        elif character == '"':
            is_quoted = not is_quoted
        elif character == "." and not is_quoted:
            yield part.lower()
            part = ""
        else:
            part += character
        at += 1
    yield part.lower()
