"""How far each application's log has been read, with the queries that were open at that point."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from collectors.positions import dump, load
from collectors.spark.logfile import Cursor

if TYPE_CHECKING:
    from collections.abc import Collection

_VERSION = 1


@dataclass(slots=True)
class AppPosition:
    """Where one log was left: file, place in it, and the tracker's state."""

    file: int = 0  # number of the file; 0 before the first
    cursor: Cursor = field(default_factory=Cursor)
    tracker: dict[str, Any] | None = None
    is_done: bool = False
    modified: float = 0.0


@dataclass(slots=True)
class SparkPosition:
    """All logs. Of finished ones only the newest are named; older ones lie before the horizon."""

    apps: dict[str, AppPosition] = field(default_factory=dict)
    horizon: float = 0.0

    @classmethod
    def parse(cls, text: str | None) -> SparkPosition:
        """Read a stored position.

        Raises:
            SourceError: it was not written by this source.
        """
        if text is None:
            return cls()
        return load(text, _VERSION, "Spark", cls._build)

    @classmethod
    def _build(cls, data: dict[str, Any]) -> SparkPosition:
        return cls({k: _load(v) for k, v in data["apps"].items()}, float(data["horizon"]))

    def dump(self) -> str:
        """The position as text."""
        apps = {name: _dump(app) for name, app in self.apps.items()}
        return dump(_VERSION, horizon=self.horizon, apps=apps)

    def is_done(self, name: str, modified: float) -> bool:
        """Whether a log needs no look."""
        app = self.apps.get(name)
        if app is None:
            return modified <= self.horizon
        return app.is_done and modified <= app.modified

    def forget(self, present: Collection[str], remembered: int) -> None:
        """Drop logs that are gone, and move the horizon past finished ones beyond the limit."""
        self.apps = {name: app for name, app in self.apps.items() if name in present}
        done = sorted(
            (name for name, app in self.apps.items() if app.is_done),
            key=lambda name: self.apps[name].modified,
        )
        for name in done[: max(0, len(done) - remembered)]:
            self.horizon = max(self.horizon, self.apps.pop(name).modified)


def _load(data: dict[str, Any]) -> AppPosition:
    return AppPosition(
        file=int(data["f"]),
        cursor=Cursor(int(data["o"]), int(data["u"])),
        tracker=data.get("t"),
        is_done=bool(data.get("done")),
        modified=float(data.get("m", 0)),
    )


def _dump(app: AppPosition) -> dict[str, Any]:
    data: dict[str, Any] = {"f": app.file, "o": app.cursor.offset, "u": app.cursor.used}
    if app.is_done:
        return {**data, "done": True, "m": app.modified}
    return {**data, "t": app.tracker} if app.tracker is not None else data
