"""DuckDB has no history of its own: our adapter keeps a journal, one JSON line per query."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from collectors.base import BadRowError, Batch, SourceCapabilities
from collectors.duckdb.mapping import to_observed
from collectors.duckdb.position import JournalPosition
from collectors.letters import dead_letter, gap_letter
from collectors.understanding import TABLES, Observed, Understanding
from lakehouse_core.domain.agent import DeadLetter, Watermark
from lakehouse_core.domain.clock import Clock, utc_now
from lakehouse_core.domain.errors import SourceUnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from collectors.duckdb.config import JournalSettings

SUFFIX = ".jsonl"
_REMEMBERED = timedelta(days=2)
_MAX_LINE = 16 * 2**20


class JournalSource:
    """Reads each file of the journal from where it stopped; a torn last line is waited for."""

    def __init__(
        self, settings: JournalSettings, understanding: Understanding, clock: Clock = utc_now
    ) -> None:
        self.name = str(settings.engine_id)
        self.capabilities = SourceCapabilities(
            tables=TABLES, freshness_lag=timedelta(seconds=1), overlap=settings.overlap
        )
        self._settings = settings
        self._understanding = understanding
        self._clock = clock

    def pull(self, since: Watermark | None) -> Iterator[Batch]:
        """Yield the lines written since the watermark, oldest file first.

        Raises:
            SourceUnavailableError: the folder is not there or cannot be read.
        """
        position = JournalPosition.parse(since.position if since else None)
        newest_at = since.event_at if since else None
        files = self._files()
        for file in files:
            if position.is_done(file.name):
                continue
            for observed, letters in self._read(file, position):
                times = [o.event.ended_at or o.event.submitted_at for o in observed]
                newest_at = max([*times, *([newest_at] if newest_at else [])], default=None)
                yield self._batch(observed, letters, position, newest_at)
        horizon = (self._clock() - _REMEMBERED).strftime("%Y%m%d%H")
        position.forget([file.name for file in files], horizon)
        yield self._batch([], [], position, newest_at)

    def _files(self) -> list[Path]:
        folder = self._settings.folder
        try:
            return sorted(f for f in folder.iterdir() if f.suffix == SUFFIX)
        except OSError as error:
            raise SourceUnavailableError(
                f"the DuckDB journal {folder} cannot be read ({error.strerror}); it is written by "
                "our DuckDB engine: check `journal` of the engine and the folder's permissions"
            ) from error

    def _read(
        self, file: Path, position: JournalPosition
    ) -> Iterator[tuple[list[Observed], list[DeadLetter]]]:
        name = file.name
        while True:
            letters: list[DeadLetter] = []
            offset = position.offsets.get(name, 0)
            try:
                size, modified = file.stat().st_size, file.stat().st_mtime
                if size < offset:
                    letters.append(self._truncated(name, offset, size))
                    offset = 0
                data = self._chunk(file, offset)
            except FileNotFoundError:
                return  # pruned between listing and reading: it had been read, or is a gap no more
            except OSError as error:
                raise SourceUnavailableError(
                    f"the DuckDB journal file {file} cannot be read ({error.strerror}); "
                    "check the folder's permissions and the disk"
                ) from error
            end = data.rfind(b"\n") + 1
            where = name
            if end == 0 and data and self._is_abandoned(modified, len(data)):
                end = len(data)
                where = f"{name}: the last line was never finished"
            if end == 0 and not letters:
                return
            observed = self._map(where, data[:end], letters)
            position.offsets[name] = offset + end
            yield observed, letters

    def _chunk(self, file: Path, offset: int) -> bytes:
        with file.open("rb") as stream:
            stream.seek(offset)
            data = stream.read(self._settings.batch_bytes)
            # A line longer than a batch is read whole, up to a bound.
            while data and b"\n" not in data and len(data) < _MAX_LINE:
                more = stream.read(self._settings.batch_bytes)
                if not more:
                    break
                data += more
            return data

    def _map(self, where: str, data: bytes, letters: list[DeadLetter]) -> list[Observed]:
        observed: list[Observed] = []
        now = self._clock()
        for line in data.split(b"\n"):
            if not line.strip():
                continue
            try:
                observed.append(to_observed(line, self._settings.catalog, now))
            except BadRowError as error:
                letters.append(self._letter(line, f"{where}: {error}"))
        return observed

    def _is_abandoned(self, modified: float, length: int) -> bool:
        """Whether nobody will finish a line: its writer is gone, or it is beyond all bounds."""
        age = self._clock() - datetime.fromtimestamp(modified, UTC)
        return age > self._settings.overlap or length >= _MAX_LINE

    def _truncated(self, name: str, offset: int, size: int) -> DeadLetter:
        reason = (
            f"{name} shrank from {offset} to {size} bytes: it was cut or replaced; what is in it "
            "now is read again, what was cut away unread is lost"
        )
        return gap_letter(self.name, f"{name}:{offset}>{size}", reason, self._clock())

    def _letter(self, line: bytes, reason: str) -> DeadLetter:
        return dead_letter(self.name, line.decode("utf-8", "replace"), reason, self._clock())

    def _batch(
        self,
        observed: list[Observed],
        letters: list[DeadLetter],
        position: JournalPosition,
        newest_at: datetime | None,
    ) -> Batch:
        return Batch(
            rows=self._understanding.rows(observed),
            dead_letters=tuple(letters),
            watermark=Watermark(
                source=self.name,
                position=position.dump(),
                event_at=newest_at,
                updated_at=self._clock(),
            ),
        )
