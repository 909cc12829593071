"""What templates say, by their ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakehouse_core.store.port import TelemetryStore

LONGEST = 100_000
TEXTS_SQL = """
SELECT template_id, left(template, $longest::BIGINT) AS template FROM query_template
WHERE list_contains($templates::VARCHAR[], template_id)
"""


def template_texts(
    store: TelemetryStore, templates: Iterable[str], longest: int = LONGEST
) -> dict[str, str]:
    """Their texts, up to so many characters; those that the store does not know are left out."""
    ids = sorted(set(templates))
    rows = store.read(TEXTS_SQL, templates=ids, longest=longest).to_pylist() if ids else []
    return {row["template_id"]: row["template"] for row in rows}
