r"""Where an error is in the statement that its author wrote, when an engine got another text.

An engine names a place in its text; in the author's it is the same word, if that stands there
exactly once. Otherwise nothing is told: a wrong place misleads more than none.

    carried((1, 8), "SELECT nope FROM lake.t", "SELECT\n  nope FROM t")    # (2, 3)
"""

from __future__ import annotations

import re

Place = tuple[int, int]
_WORD = re.compile(r"[\w$]+")
_QUOTES = '"`['


def carried(place: Place | None, sent: str, written: str) -> Place | None:
    """The place in the written text; line and column count from 1."""
    if place is None or sent == written:
        return place
    lines = sent.split("\n")
    line, column = place
    if not 1 <= line <= len(lines):
        return None
    return place_of(word_at(lines[line - 1], column - 1), written)


def word_at(line: str, offset: int) -> str | None:
    """The word that begins at an offset, without its quotes."""
    if offset < 0 or offset >= len(line):
        return None
    found = _WORD.match(line, offset + (line[offset] in _QUOTES))
    return found[0] if found else None


def place_of(word: str | None, written: str) -> Place | None:
    """The only place of a word in a text."""
    if word is None:
        return None
    found = [one for one in _WORD.finditer(written) if one[0].lower() == word.lower()]
    if len(found) != 1:
        return None
    before = written[: found[0].start()]
    quoted = int(bool(before) and before[-1] in _QUOTES)
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1 - quoted
