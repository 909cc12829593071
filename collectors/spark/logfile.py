"""Reads an event log that may still be written to, from where the last look stopped.

Spark ends a zstd frame at each flush, so a log is a row of frames of whole lines, with perhaps an
unfinished one at its end. A cursor is the start of a frame and how many decompressed bytes after it
have been used: nothing is read twice into an event, and nothing behind an unfinished tail is lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import zstandard

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

_BLOCK = 128 * 2**10
_MAGIC = b"\x28\xb5\x2f\xfd"


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in a log file: bytes of the file, then decompressed bytes behind them."""

    offset: int = 0
    used: int = 0


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole lines, where they end, and what is wrong with what follows, if something is.

    Attributes:
        lines: without their line ends.
        cursor: where to go on.
        is_end: the file has no more whole lines at this moment.
        rest: bytes of the file behind the cursor that make no whole line yet.
        damage: why the bytes at the cursor cannot be decompressed.
    """

    lines: list[bytes]
    cursor: Cursor
    is_end: bool
    rest: int = 0
    damage: str | None = None


@dataclass(frozen=True, slots=True)
class _Piece:
    text: bytes
    frame_end: int | None  # offset in the file behind the frame, when this piece ends one


def read_chunk(path: Path, codec: str | None, cursor: Cursor, limit: int) -> Chunk:
    """Read about `limit` bytes of whole lines.

    Raises:
        OSError: the file cannot be read.
    """
    reader = _LineReader(cursor)
    damage = None
    is_end = True
    with path.open("rb") as stream:
        stream.seek(cursor.offset)
        pieces = _plain(stream) if codec is None else _frames(stream)
        try:
            for piece in pieces:
                reader.feed(piece)
                if reader.size >= limit:
                    is_end = False
                    break
        except zstandard.ZstdError as error:
            damage = str(error)
    size = path.stat().st_size
    return Chunk(reader.lines, reader.cursor, is_end, max(0, size - reader.cursor.offset), damage)


def next_frame(path: Path, after: int) -> int:
    """Where the next frame seems to start behind damage; the end of the file when none does.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as stream:
        start = after + 1
        stream.seek(start)
        tail = b""
        while block := stream.read(_BLOCK):
            found = (tail + block).find(_MAGIC)
            if found >= 0:
                return start - len(tail) + found
            start += len(block)
            tail = block[-3:]
        return start


class _LineReader:
    """Cuts pieces into lines, and knows the cursor behind the last whole one."""

    def __init__(self, cursor: Cursor) -> None:
        self.lines: list[bytes] = []
        self.size = 0
        self.cursor = cursor
        self._skip = cursor.used
        self._pending = b""

    def feed(self, piece: _Piece) -> None:
        text = piece.text
        if self._skip:
            skipped = min(self._skip, len(text))
            self._skip -= skipped
            text = text[skipped:]
        if b"\n" in text:
            whole, _, rest = (self._pending + text).rpartition(b"\n")
            lines = whole.split(b"\n")
            self.lines += lines
            self.size += len(whole) + 1
            self.cursor = Cursor(self.cursor.offset, self.cursor.used + len(whole) + 1)
            self._pending = rest
        else:
            self._pending += text
        # Behind a frame whose every line was taken, the frame itself is done with.
        if piece.frame_end is not None and not self._pending and not self._skip:
            self.cursor = Cursor(piece.frame_end, 0)


def _plain(stream: BinaryIO) -> Iterator[_Piece]:
    while block := stream.read(_BLOCK):
        # A plain file can be entered anywhere: each line end is as good as the end of a frame.
        yield _Piece(block, stream.tell())


def _frames(stream: BinaryIO) -> Iterator[_Piece]:
    offset = stream.tell()
    decompressor = zstandard.ZstdDecompressor()
    frame = decompressor.decompressobj()
    while block := stream.read(_BLOCK):
        offset += len(block)
        while block:
            text = frame.decompress(block)
            if not frame.eof:
                yield _Piece(text, None)
                break
            block = frame.unused_data
            yield _Piece(text, offset - len(block))
            frame = decompressor.decompressobj()
