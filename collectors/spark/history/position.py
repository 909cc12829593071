"""How far each application of a history server has been read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from collectors.positions import dump, load

if TYPE_CHECKING:
    from collections.abc import Collection

_VERSION = 1
_FORM = "history server"  # the event log's position is another


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
        return load(text, _VERSION, "Spark", cls._build)

    @classmethod
    def _build(cls, data: dict[str, Any]) -> HistoryPosition:
        if data["form"] != _FORM:
            raise ValueError(f"form {data['form']}")
        return cls(
            {
                name: AppProgress(int(u), int(seen), dict(still), bool(done))
                for name, (u, seen, still, done) in data["apps"].items()
            }
        )

    def dump(self) -> str:
        """The position as text."""
        apps = {n: [a.updated, a.seen, a.open, a.is_done] for n, a in self.apps.items()}
        return dump(_VERSION, form=_FORM, apps=apps)

    def forget(self, listed: Collection[str]) -> dict[str, AppProgress]:
        """Drop what the server dropped; returns applications that were not read to their end."""
        gone = {name: app for name, app in self.apps.items() if name not in listed}
        self.apps = {name: app for name, app in self.apps.items() if name in listed}
        return {name: app for name, app in gone.items() if not app.is_done}
