"""Reads one application's log, file after file, and keeps its position up to date."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from collectors.letters import dead_letter, gap_letter
from collectors.spark.lines import BAD_LINE, decode, event_name
from collectors.spark.logfile import Cursor, next_frame, read_chunk
from collectors.spark.queries import Application, TrackedQuery
from collectors.spark.tracker import Tracker
from lakehouse_core.domain.errors import SourceError, SourceUnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collectors.spark.config import EventLogSettings
    from collectors.spark.layout import AppLog, LogFile
    from collectors.spark.logfile import Chunk
    from collectors.spark.position import AppPosition
    from lakehouse_core.domain.agent import DeadLetter
    from lakehouse_core.domain.clock import Clock

_CODECS = (None, "zstd")


@dataclass(frozen=True, slots=True)
class Step:
    """What a piece of a log brought: queries that changed, lines that could not be understood."""

    changed: tuple[TrackedQuery, ...] = ()
    letters: tuple[DeadLetter, ...] = ()
    application: Application = field(default_factory=Application)


class AppLogReader:
    """One log. The position it is given is right whenever a step has been yielded."""

    def __init__(
        self, settings: EventLogSettings, app: AppLog, position: AppPosition, clock: Clock
    ) -> None:
        self._settings = settings
        self._app = app
        self._position = position
        self._clock = clock
        self._letters: list[DeadLetter] = []
        try:
            self._tracker = Tracker.load(position.tracker, settings.open_queries)
        except (KeyError, TypeError, ValueError) as error:
            raise SourceError(
                f"the stored position in the log of {app.name} cannot be read ({error}); delete "
                "this source's row from the watermark table to read the event logs anew"
            ) from error

    def read(self, *, is_over: bool) -> Iterator[Step]:
        """Yield a step per piece of the log; `is_over` when nothing will be added to it.

        Raises:
            SourceUnavailableError: a file of it cannot be read.
        """
        files = self._unread_files()
        for number, file in enumerate(files):
            is_last = number == len(files) - 1
            yield from self._read_file(file, is_closed=is_over or not is_last)
        if is_over:
            if not self._tracker.application.is_over:
                self._tracker.abandon("the Spark application ended before this query did")
            self._position.is_done = True
            self._position.modified = self._app.modified
        if is_over or self._letters:
            yield self._step()

    def _unread_files(self) -> list[LogFile]:
        """The files from where we stopped; those compacted or removed before we came are a gap."""
        position, files = self._position, self._app.files
        if position.file == 0:
            return list(files)
        # A compacted file repeats, without their tasks, queries that are in the store already.
        fresh = [f for f in files if f.index >= position.file and not f.is_compacted]
        if fresh and fresh[0].index == position.file:
            return fresh
        expected = position.file
        first = fresh[0].index if fresh else max((f.index for f in files), default=0) + 1
        if first > expected:
            self._gap(
                f"{self._app.name}:{expected}-{first}",
                f"log of {self._app.name}: files {expected} to {first - 1} were compacted or "
                "removed before they were read to their end; collect more often, or keep more "
                "files (spark.history.fs.eventLog.rolling.maxFilesToRetain)",
            )
            position.file, position.cursor = first, Cursor()
        return fresh

    def _read_file(self, file: LogFile, *, is_closed: bool) -> Iterator[Step]:
        position = self._position
        if file.index != position.file:
            position.file, position.cursor = file.index, Cursor()
        if file.codec not in _CODECS:
            self._gap(
                str(file.path.name),
                f"{file.path.name} is compressed with {file.codec}, which is not read; set "
                "spark.eventLog.compression.codec=zstd",
            )
            return
        while True:
            chunk = self._chunk(file)
            self._feed(file, chunk)
            before, position.cursor = position.cursor, chunk.cursor
            if chunk.damage is not None:
                self._skip_damage(file, chunk, is_closed=is_closed)
            elif chunk.is_end and is_closed and chunk.rest > 0:
                self._gap(
                    f"{file.path.name}@{chunk.cursor.offset}",
                    f"{file.path.name}: its last {chunk.rest} bytes were never finished",
                )
            if position.cursor != before:
                yield self._step()
            if position.cursor == before or (chunk.is_end and chunk.damage is None):
                return

    def _chunk(self, file: LogFile) -> Chunk:
        try:
            return read_chunk(
                file.path, file.codec, self._position.cursor, self._settings.batch_bytes
            )
        except OSError as error:
            raise SourceUnavailableError(
                f"the Spark event log {file.path} cannot be read ({error.strerror}); check its "
                "permissions and the disk"
            ) from error

    def _skip_damage(self, file: LogFile, chunk: Chunk, *, is_closed: bool) -> None:
        start = next_frame(file.path, chunk.cursor.offset)
        self._gap(
            f"{file.path.name}@{chunk.cursor.offset}",
            f"{file.path.name}: bytes {chunk.cursor.offset} to {start} cannot be decompressed "
            f"({chunk.damage}); the events in them are lost",
        )
        size = chunk.cursor.offset + chunk.rest
        if start < size or is_closed:
            self._position.cursor = Cursor(start)

    def _feed(self, file: LogFile, chunk: Chunk) -> None:
        tracker = self._tracker
        for line in chunk.lines:
            if not line or line.isspace():
                continue
            try:
                name = event_name(line)
                if tracker.wants(name):
                    tracker.feed(name, decode(name, line))
            except BAD_LINE as error:
                reason = f"{file.path.name}: {type(error).__name__}: {error}"
                text = line.decode("utf-8", "replace")
                self._letters.append(
                    dead_letter(str(self._settings.engine_id), text, reason, self._clock())
                )

    def _step(self) -> Step:
        changed = tuple(self._tracker.take_changed())
        letters, self._letters = tuple(self._letters), []
        self._position.tracker = self._tracker.dump()
        return Step(changed, letters, self._tracker.application)

    def _gap(self, gap_id: str, reason: str) -> None:
        source = str(self._settings.engine_id)
        self._letters.append(gap_letter(source, gap_id, reason, self._clock()))
