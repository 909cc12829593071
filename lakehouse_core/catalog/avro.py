"""Avro container files: proof that all of a file is there, and a codec DuckDB can read.

DuckDB's reader stops without a word at a block that is cut short, so a truncated manifest would
look like a smaller one. Here the blocks are walked (not decoded): every length and every sync
marker must fit, and the sum of their record counts is what the reader has to come up with.
"""

from __future__ import annotations

import bz2
from dataclasses import dataclass
from typing import TYPE_CHECKING

import zstandard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MAGIC = b"Obj\x01"
_SYNC_BYTES = 16
_CODEC = "avro.codec"
_SCHEMA = "avro.schema"
# DuckDB reads these itself; the others are unpacked first.
_READ_BY_DUCKDB = ("null", "deflate", "snappy")
_UNPACK: dict[str, Callable[[bytes], bytes]] = {
    "zstandard": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
    "bzip2": bz2.decompress,
}


@dataclass(frozen=True, slots=True)
class Container:
    """What a whole container file says about itself."""

    schema: str
    records: int
    recoded: bytes | None  # the same file without compression, when DuckDB lacks its codec


def inspect_container(data: bytes) -> Container:
    """Walk a container file from end to end.

    Raises:
        ValueError: it is cut short, damaged, or in a codec nobody here can read; says where.
    """
    try:
        metadata, position = _read_header(data)
        sync = data[position : position + _SYNC_BYTES]
        position += _SYNC_BYTES
        codec = metadata.get(_CODEC, b"null").decode()
        recoded = None
        if codec not in _READ_BY_DUCKDB:
            recoded = _recode(data, metadata, position, sync)
        schema = metadata[_SCHEMA].decode()
        return Container(schema, _count(data, position, sync), recoded)
    except IndexError as error:
        raise ValueError("the Avro file is cut short") from error
    except KeyError as error:
        raise ValueError(f"the Avro file has no {error}") from error


def _count(data: bytes, position: int, sync: bytes) -> int:
    records = 0
    end = len(data)
    while position < end:
        count, position = _read_long(data, position)
        size, position = _read_long(data, position)
        position += size
        if count < 0 or size < 0 or data[position : position + _SYNC_BYTES] != sync:
            raise ValueError(f"the Avro file is damaged or cut short at byte {min(position, end)}")
        position += _SYNC_BYTES
        records += count
    return records


def _read_long(data: bytes, position: int) -> tuple[int, int]:
    byte = data[position]
    position += 1
    value = byte & 0x7F
    shift = 7
    while byte & 0x80:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if shift > 70:
            raise ValueError(f"the Avro file is damaged at byte {position}")
    return (value >> 1) ^ -(value & 1), position


def _read_header(data: bytes) -> tuple[dict[str, bytes], int]:
    if data[: len(_MAGIC)] != _MAGIC:
        raise ValueError("this is not an Avro file")
    metadata: dict[str, bytes] = {}
    position = len(_MAGIC)
    while True:
        count, position = _read_long(data, position)
        if count == 0:
            return metadata, position
        if count < 0:  # then the block's size in bytes follows
            count = -count
            _, position = _read_long(data, position)
        for _ in range(count):
            key, position = _read_bytes(data, position)
            metadata[key.decode()], position = _read_bytes(data, position)


def _read_bytes(data: bytes, position: int) -> tuple[bytes, int]:
    size, position = _read_long(data, position)
    if size < 0 or position + size > len(data):
        raise ValueError(f"the Avro file is damaged or cut short at byte {position}")
    return data[position : position + size], position + size


def _recode(data: bytes, metadata: dict[str, bytes], position: int, sync: bytes) -> bytes:
    codec = metadata[_CODEC].decode()
    unpack = _UNPACK.get(codec)
    if unpack is None:
        raise ValueError(f"the Avro file is packed with {codec!r}, which cannot be read")
    header = {**metadata, _CODEC: b"null"}
    parts = [_MAGIC, _long(len(header))]
    for key, value in header.items():
        parts += [_long(len(key.encode())), key.encode(), _long(len(value)), value]
    parts += [_long(0), sync]
    for count, block in _blocks(data, position, sync):
        try:
            plain = unpack(block)
        except (OSError, zstandard.ZstdError) as error:
            raise ValueError(f"a block of the Avro file cannot be unpacked: {error}") from error
        parts += [_long(count), _long(len(plain)), plain, sync]
    return b"".join(parts)


def _blocks(data: bytes, position: int, sync: bytes) -> Iterator[tuple[int, bytes]]:
    _count(data, position, sync)  # proves the lengths before they are used
    while position < len(data):
        count, position = _read_long(data, position)
        block, position = _read_bytes(data, position)
        position += _SYNC_BYTES
        yield count, block


def _long(value: int) -> bytes:
    encoded = (value << 1) ^ (value >> 63)
    out = bytearray()
    while encoded > 0x7F:
        out.append(encoded & 0x7F | 0x80)
        encoded >>= 7
    out.append(encoded)
    return bytes(out)
