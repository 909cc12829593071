"""What a translation changed, as people read it."""

from __future__ import annotations

import difflib

from lakehouse_core.sql.preview import laid_out


def sql_diff(before: tuple[str, str], after: tuple[str, str]) -> str:
    """All lines of two texts (each with its dialect), laid out alike; `-` before, `+` after."""
    lines = difflib.ndiff(
        laid_out(*before).strip().splitlines(), laid_out(*after).strip().splitlines()
    )
    return "\n".join(line for line in lines if not line.startswith("?"))
