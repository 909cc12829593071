"""Lines of the DuckDB journal → query events. Pure."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from collectors.base import BadRowError
from collectors.events import from_json
from collectors.understanding import Observed

if TYPE_CHECKING:
    from datetime import datetime


def to_observed(line: bytes, catalog: str | None, collected_at: datetime) -> Observed:
    """The event of one line; unqualified tables are those of the engine's catalog.

    Raises:
        BadRowError: the line is not a JSON object with the fields of a query event.
    """
    try:
        payload = json.loads(line)
    except ValueError as error:  # not JSON, or not UTF-8
        raise BadRowError(f"not JSON ({error})") from error
    event = from_json(payload, collected_at)
    return Observed(
        replace(event, collected_at=collected_at, dialect=event.dialect or "duckdb"), catalog
    )
