"""The landing folder: exports on their way from the store to bronze.

One folder per export, named by its id and put there by a rename, so it is whole or not there:

    <id>/manifest.json                what it holds, which export it follows, where to go on
    <id>/query_event-00000.parquet    its rows; removed once gold has them
    <id>/known-query_event.parquet    hashes of rows near its end, so that the next export can tell
                                      what it has seen; losing them only makes rows come twice
"""

from __future__ import annotations

import fcntl
import json
import shutil
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lakehouse_core.pipeline.errors import PipelineBusyError
from lakehouse_core.store.durable import sync

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MANIFEST = "manifest.json"
_UNFINISHED = ".unfinished-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The rows of one store table in an export: files, how many, the days they are about."""

    files: tuple[str, ...]
    rows: int
    days: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """One export.

    Attributes:
        id: ordered by time.
        exported_at: when the store was read, ISO 8601.
        follows: the export before it; None for one that starts from the beginning.
        tables: store table → its rows.
        cursor: where the next export goes on, per table.
    """

    id: str
    exported_at: str
    follows: str | None
    tables: dict[str, Part]
    cursor: dict[str, Any]

    @property
    def moment(self) -> datetime:
        """When the store was read."""
        return datetime.fromisoformat(self.exported_at)

    @property
    def rows(self) -> int:
        """How many rows it holds."""
        return sum(part.rows for part in self.tables.values())


class Landing:
    """The folder and what is in it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Let one run at a time work here.

        Raises:
            PipelineBusyError: another one does.
        """
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (self._folder / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise PipelineBusyError(
                    f"Another run of the pipeline is under way ({self._folder}); wait for it"
                ) from error
            yield

    def exports(self) -> tuple[Export, ...]:
        """What landed and was not cleared away, oldest first."""
        found = [
            _read(folder / MANIFEST)
            for folder in self._folder.glob("[0-9]*")
            if (folder / MANIFEST).is_file()
        ]
        return tuple(sorted(found, key=lambda one: one.id))

    def begin(self, export_id: str) -> Path:
        """A folder to write an export into; what a killed export left is removed first."""
        for left in self._folder.glob(f"{_UNFINISHED}*"):
            shutil.rmtree(left, ignore_errors=True)
        folder = self._folder / f"{_UNFINISHED}{export_id}"
        folder.mkdir(parents=True, mode=0o700)
        return folder

    def discard(self, unfinished: Path) -> None:
        """Give up an export that turned out to be empty."""
        shutil.rmtree(unfinished, ignore_errors=True)

    def publish(self, unfinished: Path, export: Export) -> Export:
        """Make a written export appear, durably; its files are named from their final place."""
        for file in unfinished.iterdir():
            sync(file)
        manifest = unfinished / MANIFEST
        manifest.write_text(json.dumps(asdict(export), indent=1), encoding="utf-8")
        sync(manifest)
        unfinished.rename(self.folder_of(export.id))
        sync(self._folder)
        return export

    def folder_of(self, export_id: str) -> Path:
        """Where an export is, or will be."""
        return self._folder / export_id

    def known(self, export_id: str, table: str) -> Path:
        """Where the hashes of rows are that an export has seen of a table."""
        return self.folder_of(export_id) / f"known-{table}.parquet"

    def has_rows(self, export: Export) -> bool:
        """Whether all its files are still there."""
        folder = self.folder_of(export.id)
        return all(
            (folder / name).is_file() for part in export.tables.values() for name in part.files
        )

    def settle(self, through: str) -> None:
        """Remove what gold has: all of older exports, the rows of the newest."""
        done = [one for one in self.exports() if one.id <= through]
        for export in done[:-1]:
            shutil.rmtree(self.folder_of(export.id), ignore_errors=True)
        for export in done[-1:]:
            for part in export.tables.values():
                for name in part.files:
                    (self.folder_of(export.id) / name).unlink(missing_ok=True)

    def clear(self) -> None:
        """Forget everything: the next export starts anew."""
        for export in self.exports():
            shutil.rmtree(self.folder_of(export.id), ignore_errors=True)


def _read(path: Path) -> Export:
    raw = json.loads(path.read_text(encoding="utf-8"))
    tables = {
        name: Part(files=tuple(part["files"]), rows=part["rows"], days=tuple(part["days"]))
        for name, part in raw.pop("tables").items()
    }
    return Export(tables=tables, **raw)
