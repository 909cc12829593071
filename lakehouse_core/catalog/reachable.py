"""Which files a table's metadata reaches, so that a loss is noticed although nobody committed.

A table that did not change is not read again. Its metadata file, manifest list and manifests are
looked at instead: there, and of the size they had when they were read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import uuid
from typing import TYPE_CHECKING

import structlog

from lakehouse_core.catalog.location import file_size
from lakehouse_core.domain.errors import MetadataUnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_log = structlog.get_logger(__name__)


class ReachableFiles:
    """One small file per table below a folder; losing it costs one reading of the table."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def remember(self, table_id: str, location: str, others: Iterable[str]) -> None:
        """Note the files behind one metadata location, with their present sizes.

        Raises:
            MetadataUnreadableError: one of them is missing.
        """
        files = {one: file_size(one) for one in (location, *others)}
        path = self._path(table_id)
        aside = path.with_suffix(f".{uuid.uuid4().hex}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            aside.write_text(json.dumps({"location": location, "files": files}))
            aside.replace(path)
        except OSError as error:
            _log.warning("manifest cache cannot be written", file=str(path), error=str(error))
            with contextlib.suppress(OSError):
                aside.unlink()

    def is_intact(self, table_id: str, location: str) -> bool:
        """Whether all files behind this location are known and as they were.

        False asks for another reading, which then finds what is wrong, or nothing.
        """
        try:
            known = json.loads(self._path(table_id).read_text())
            if known["location"] != location:
                return False
            return all(file_size(one) == size for one, size in known["files"].items())
        except (OSError, ValueError, KeyError, TypeError, AttributeError, MetadataUnreadableError):
            return False

    def _path(self, table_id: str) -> Path:
        return self._folder / f"{hashlib.sha256(table_id.encode()).hexdigest()[:32]}.json"
