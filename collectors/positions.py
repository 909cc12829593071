"""What positions of sources have in common: JSON with a version, refused when it is not theirs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

from lakehouse_core.domain.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def load(text: str, version: int, source: str, build: Callable[[dict[str, Any]], T]) -> T:
    """Build a position from its stored text.

    Args:
        text: what `dump` made.
        version: the one we write; another is refused.
        source: the kind of source, for the error.
        build: makes the position; what it misses in the data is told.

    Raises:
        SourceError: the text was not written by this source.
    """
    try:
        data = json.loads(text)
        if data["v"] != version:
            raise ValueError(f"version {data['v']}")
        return build(data)
    except (ValueError, KeyError, TypeError, AttributeError, SourceError) as error:
        raise SourceError(
            f"the stored position of this {source} source cannot be read ({error}); delete its row "
            "from the watermark table to read the history anew"
        ) from error


def dump(version: int, **data: Any) -> str:
    """A position as text."""
    return json.dumps({"v": version, **data}, separators=(",", ":"), ensure_ascii=False)
