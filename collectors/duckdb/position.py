"""How far each file of the journal has been read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from collectors.positions import dump, load

if TYPE_CHECKING:
    from collections.abc import Collection

_VERSION = 1


@dataclass(slots=True)
class JournalPosition:
    """Bytes read per file, and the hour before which every file has been read to its end.

    File names start with their hour (`2026111606-4711.jsonl`); a file is not written to after its
    hour, so files of long ago need no entry each: the position stays small.
    """

    offsets: dict[str, int] = field(default_factory=dict)
    done_before: str = ""

    @classmethod
    def parse(cls, text: str | None) -> JournalPosition:
        """Read a stored position.

        Raises:
            SourceError: it was not written by this source.
        """
        if text is None:
            return cls()
        return load(text, _VERSION, "DuckDB", cls._build)

    @classmethod
    def _build(cls, data: dict[str, Any]) -> JournalPosition:
        return cls({str(k): int(v) for k, v in data["files"].items()}, data["done_before"])

    def dump(self) -> str:
        """The position as text."""
        files = dict(sorted(self.offsets.items()))
        return dump(_VERSION, done_before=self.done_before, files=files)

    def is_done(self, name: str) -> bool:
        """Whether a file lies before the horizon and was forgotten as read."""
        return name < self.done_before and name not in self.offsets

    def forget(self, present: Collection[str], horizon: str) -> None:
        """Drop files that are gone, and those before the horizon; call when all was read."""
        self.done_before = max(self.done_before, horizon)
        self.offsets = {
            name: offset
            for name, offset in self.offsets.items()
            if name in present and name >= self.done_before
        }
