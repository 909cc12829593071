"""The statements of golden/translate.sql: what people write when they ask the same thing."""

from __future__ import annotations

from tests.unit.sql.golden import FOLDER


def _statements() -> tuple[tuple[str, str], ...]:
    blocks = (FOLDER / "translate.sql").read_text(encoding="utf-8").split("-- dialect: ")[1:]
    return tuple((d, sql.strip()) for d, _, sql in (block.partition("\n") for block in blocks))


STATEMENTS = _statements()
