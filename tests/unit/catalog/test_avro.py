"""Avro containers: whole files pass, anything less is noticed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse_core.catalog.avro import inspect_container
from lakehouse_core.domain.errors import MetadataUnreadableError
from tests.unit.catalog.lakes import AVRO, File, HandMade, Lake, Manifest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A manifest of 12 entries in 3 blocks."""
    lake = Lake(tmp_path_factory.mktemp("avro"))
    made = HandMade(lake, blocks=3)
    made.write_manifest(Manifest(tuple(File() for _ in range(12))), 1)
    lake.close()
    return next(made.folder.rglob("*-m0.avro"))


def told_of(data: bytes) -> int | str:
    """The number of records, or why it cannot be told."""
    try:
        return inspect_container(data).records
    except ValueError as error:
        return str(error)


def test_a_whole_file_tells_its_schema_and_its_records(manifest: Path) -> None:
    container = inspect_container(manifest.read_bytes())
    assert container.records == 12
    assert '"manifest_entry"' in container.schema


@settings(max_examples=200)
@given(data=st.data())
def test_a_file_cut_anywhere_is_noticed_or_ends_at_a_block(
    manifest: Path, data: st.DataObject
) -> None:
    whole = manifest.read_bytes()
    part = whole[: data.draw(st.integers(0, len(whole) - 1))]
    told = told_of(part)
    assert told < 12 if isinstance(told, int) else "Avro" in told


@pytest.mark.slow
@settings(max_examples=200)
@given(data=st.data())
def test_damaged_bytes_never_raise_anything_but_a_value_error(
    manifest: Path, data: st.DataObject
) -> None:
    damaged = bytearray(manifest.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    assert told_of(bytes(damaged)) is not None


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not an Avro file"),
        (b"PAR1 something else", "not an Avro file"),
        (b"Obj\x01", "cut short"),
        (b"Obj\x01\x00" + b"s" * 16, "avro.schema"),
        (b"Obj\x01" + b"\xff" * 40, "damaged"),
    ],
)
def test_what_is_no_avro_file_is_told(content: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        inspect_container(content)


def test_an_unknown_codec_is_named(manifest: Path) -> None:
    packed = manifest.read_bytes().replace(b"\x0edeflate", b"\x0eimplode")
    with pytest.raises(ValueError, match="implode"):
        inspect_container(packed)


def test_a_block_that_does_not_unpack_is_told(lake: Lake) -> None:
    made = HandMade(lake, codec="zstandard")
    made.write_manifest(Manifest((File(),)), 1)
    path = next(made.folder.rglob("*-m0.avro"))
    damaged = path.read_bytes().replace(b"\x28\xb5\x2f\xfd", b"\x00\x00\x00\x00")
    with pytest.raises(ValueError, match="cannot be unpacked"):
        inspect_container(damaged)


def test_many_files_are_read_in_order_with_one_answer_per_schema(lake: Lake) -> None:
    made = HandMade(lake)
    paths = [
        made.write_manifest(Manifest(tuple(File(size=n) for _ in range(n))), 1)["manifest_path"]
        for n in (3, 1, 2)
    ]
    made.version = 3
    paths.append(made.write_manifest(Manifest((File(size=9),)), 1)["manifest_path"])
    answers = list(AVRO.read(paths))
    assert [answer.counts for answer in answers] == [(3, 1, 2), (1,)]
    sizes = [row["data_file"]["file_size_in_bytes"] for row in answers[0].rows.to_pylist()]
    assert sizes == [3, 3, 3, 1, 2, 2]


def test_of_many_files_the_broken_one_is_named(lake: Lake) -> None:
    made = HandMade(lake)
    paths = [made.write_manifest(Manifest((File(),)), 1)["manifest_path"] for _ in range(5)]
    broken = lake.root / "broken.avro"
    # Whole to the walk, nonsense to the decoder: the schema is cut inside its text.
    data = next(made.folder.rglob("*-m0.avro")).read_bytes()
    broken.write_bytes(data.replace(b'"manifest_entry"', b'"manifest_entry{'))
    with pytest.raises(MetadataUnreadableError, match=r"broken\.avro"):
        list(AVRO.read([*paths, str(broken)]))
