"""How far each application of a history server has been read."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lakehouse_core.domain.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Collection

_VERSION = 1


@dataclass(slots=True)
class AppProgress:
    """One application (attempt).

    Attributes:
        updated: when the server last heard of it, as it says.
        seen: the highest execution id taken.
        open: events, as JSON and without secrets, of queries that were not over.
        is_done: nothing more will come.
    """

    updated: int = 0
    seen: int = -1
    open: dict[str, dict[str, Any]] = field(default_factory=dict)
    is_done: bool = False


@dataclass(slots=True)
class HistoryPosition:
    """All applications that the server lists."""

    apps: dict[str, AppProgress] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str | None) -> HistoryPosition:
        """Read a stored position.

        Raises:
            SourceError: it was not written by this source.
        """
        if text is None:
            return cls()
        try:
            data = json.loads(text)
            if data["v"] != _VERSION or data["form"] != "history server":
                raise ValueError("another form or version")
            return cls(
                {
                    name: AppProgress(int(u), int(seen), dict(still), bool(done))
                    for name, (u, seen, still, done) in data["apps"].items()
                }
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise SourceError(
                f"the stored position of this Spark source cannot be read ({error}); delete its "
                "row from the watermark table to read the history server anew"
            ) from error

    def dump(self) -> str:
        """The position as text."""
        apps = {n: [a.updated, a.seen, a.open, a.is_done] for n, a in self.apps.items()}
        data = {"v": _VERSION, "form": "history server", "apps": apps}
        return json.dumps(data, separators=(",", ":"), ensure_ascii=False)

    def forget(self, listed: Collection[str]) -> dict[str, AppProgress]:
        """Drop what the server dropped; returns applications that were not read to their end."""
        gone = {name: app for name, app in self.apps.items() if name not in listed}
        self.apps = {name: app for name, app in self.apps.items() if name in listed}
        return {name: app for name, app in gone.items() if not app.is_done}
