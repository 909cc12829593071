"""Text as every store and every pipe takes it."""

from __future__ import annotations

REPLACEMENT = "\ufffd"


def well_formed(text: str) -> str:
    """The text with a replacement character for what no store and no pipe takes.

    That is half a character (a lone surrogate, which JSON can say and UTF-8 cannot) and NUL.
    """
    if text.isascii() and "\x00" not in text:
        return text
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return whole.replace("\x00", REPLACEMENT)
