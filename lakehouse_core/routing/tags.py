"""Tags of a statement: `etl`, `team:finance`, or QueryFlux's `query_tags` session property."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lakehouse_core.routing.request import Request

SESSION_PROPERTY = "query_tags"
_MOST = 20
_LONGEST = 128
_KEY = re.compile(r"[A-Za-z0-9_-]{1,128}\Z")


def tags_of(request: Request) -> dict[str, str | None]:
    """Key → value, None for a tag without one; what is no tag is left out."""
    found = list(map(_pair, request.tags))
    given = request.session.get(SESSION_PROPERTY)
    if given:
        found += _of_property(given)
    kept = (pair for pair in found if _is_tag(*pair))
    return dict(list(dict(kept).items())[:_MOST])


def with_defaults(tags: tuple[str, ...], defaults: Mapping[str, str | None]) -> tuple[str, ...]:
    """The tags of a request and those of its group that it lacks."""
    if not defaults:
        return tags
    given = {_pair(tag)[0] for tag in tags}
    missing = (
        key if value is None else f"{key}:{value}"
        for key, value in defaults.items()
        if key not in given
    )
    return (*tags, *missing)


def _pair(tag: str) -> tuple[str, str | None]:
    key, separator, value = tag.partition(":")
    return key.strip(), value.strip() if separator else None


def _of_property(text: str) -> Iterable[tuple[str, str | None]]:
    if text.lstrip().startswith("{"):
        try:
            document = json.loads(text)
        except ValueError:
            return ()
        return [(k, None if v is None else str(v)) for k, v in document.items()]
    return [_pair(part) for part in text.split(",")]


def _is_tag(key: str, value: str | None) -> bool:
    return bool(_KEY.match(key)) and len(value or "") <= _LONGEST
