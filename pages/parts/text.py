"""Names and texts of others on our pages: shown as they are, never read as Markdown."""

from __future__ import annotations

_SPECIAL = "\\`*_{}[]()#+-!|<>~$:&^="
_ESCAPES = str.maketrans({character: f"\\{character}" for character in _SPECIAL})


def plain(text: str) -> str:
    """A text that Markdown shows letter by letter, on one line."""
    return " ".join(text.split()).translate(_ESCAPES)


def coloured(text: str, colour: str) -> str:
    """A text of others in a colour of ours, as Markdown."""
    return f':color[{plain(text)}]{{foreground="{colour}"}}'


def shorten(text: str, limit: int = 90) -> str:
    """One line, cut at a word when it is longer than the limit."""
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    return f"{line[:limit].rsplit(' ', 1)[0]} …"
