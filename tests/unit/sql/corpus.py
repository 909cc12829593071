"""The statements of golden/corpus.sql."""

from __future__ import annotations

from tests.unit.sql.golden import FOLDER


def _statements() -> list[tuple[str, str]]:
    blocks = (FOLDER / "corpus.sql").read_text().split("-- dialect: ")[1:]
    return [(dialect, sql.strip()) for dialect, _, sql in (b.partition("\n") for b in blocks)]


STATEMENTS = _statements()
