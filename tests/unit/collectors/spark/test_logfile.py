from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from collectors.spark.logfile import Cursor, next_frame, read_chunk

if TYPE_CHECKING:
    from pathlib import Path


lines_strategy = st.lists(
    st.binary(max_size=40).map(lambda b: b.replace(b"\n", b" ")), min_size=1, max_size=20
)


def frames(lines: list[bytes], per_frame: int) -> list[bytes]:
    compressor = zstandard.ZstdCompressor()
    groups = [lines[i : i + per_frame] for i in range(0, len(lines), per_frame)]
    return [compressor.compress(b"".join(line + b"\n" for line in group)) for group in groups]


def read_all(
    path: Path, codec: str | None, cursor: Cursor, limit: int
) -> tuple[list[bytes], Cursor]:
    found: list[bytes] = []
    while True:
        chunk = read_chunk(path, codec, cursor, limit)
        assert chunk.damage is None
        found += chunk.lines
        if chunk.cursor == cursor:
            return found, cursor
        cursor = chunk.cursor


@pytest.mark.slow
@given(lines_strategy, st.integers(1, 5), st.data())
def test_a_log_read_while_it_grows_gives_each_line_once(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[bytes],
    per_frame: int,
    data: st.DataObject,
) -> None:
    path = tmp_path_factory.mktemp("log") / "events_1_app.zstd"
    blob = b"".join(frames(lines, per_frame))
    cuts = data.draw(st.lists(st.integers(0, len(blob)), max_size=5).map(sorted))
    limit = data.draw(st.sampled_from([1, 30, 10_000]))
    found: list[bytes] = []
    cursor = Cursor()
    for cut in [*cuts, len(blob)]:
        path.write_bytes(blob[:cut])
        more, cursor = read_all(path, "zstd", cursor, limit)
        found += more
    assert found == lines
    assert cursor == Cursor(len(blob))


@pytest.mark.slow
@given(lines_strategy, st.data())
def test_a_plain_log_read_while_it_grows_gives_each_line_once(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("log") / "app"
    blob = b"".join(line + b"\n" for line in lines)
    cuts = data.draw(st.lists(st.integers(0, len(blob)), max_size=5).map(sorted))
    found: list[bytes] = []
    cursor = Cursor()
    for cut in [*cuts, len(blob)]:
        path.write_bytes(blob[:cut])
        more, cursor = read_all(path, None, cursor, 50)
        found += more
    assert found == lines


def test_lines_of_an_unfinished_frame_are_read_as_soon_as_they_can_be(tmp_path: Path) -> None:
    path = tmp_path / "events_1_app.zstd"
    stream = zstandard.ZstdCompressor().compressobj()
    written = stream.compress(b"one\ntwo\nthr") + stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    path.write_bytes(written)
    first, cursor = read_all(path, "zstd", Cursor(), 10_000)
    assert first == [b"one", b"two"]
    path.write_bytes(written + stream.compress(b"ee\n") + stream.flush())
    second, _ = read_all(path, "zstd", cursor, 10_000)
    assert second == [b"three"]


def test_a_line_over_two_frames_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "events_1_app.zstd"
    compress = zstandard.ZstdCompressor().compress
    path.write_bytes(compress(b"a\nfir") + compress(b"st\nb\n"))
    assert read_all(path, "zstd", Cursor(), 1)[0] == [b"a", b"first", b"b"]


def test_damage_is_told_and_the_next_frame_found(tmp_path: Path) -> None:
    path = tmp_path / "events_1_app.zstd"
    parts = frames([b"one", b"two", b"three"], 1)
    path.write_bytes(parts[0] + b"\x00garbage\x00" + parts[1] + parts[2])
    chunk = read_chunk(path, "zstd", Cursor(), 10_000)
    assert chunk.lines == [b"one"]
    assert chunk.damage
    start = next_frame(path, chunk.cursor.offset)
    assert read_all(path, "zstd", Cursor(start), 10_000)[0] == [b"two", b"three"]


def test_without_a_further_frame_the_search_ends_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"\x00" * 300_000)
    assert next_frame(path, 5) == 300_000


def test_the_rest_that_makes_no_line_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "events_1_app.zstd"
    first, second = frames([b"one", b"two"], 1)
    path.write_bytes(first + second[:-3])
    chunk = read_chunk(path, "zstd", Cursor(), 10_000)
    assert chunk.lines == [b"one"]
    assert chunk.rest == len(second) - 3
