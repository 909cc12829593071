"""Metadata files: what is read, what is refused, and with which words."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest
from pyiceberg.table.sorting import NullOrder, SortDirection, SortField, SortOrder
from pyiceberg.transforms import BucketTransform, IdentityTransform, TruncateTransform

from lakehouse_core.catalog.metadata import read_metadata
from lakehouse_core.domain.errors import MetadataUnreadableError
from tests.unit.catalog.lakes import BY_REGION, FIRST_COMMIT_MS, File, HandMade, Manifest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.catalog.lakes import Lake


@pytest.fixture
def document(lake: Lake) -> dict[str, Any]:
    made = HandMade(lake, specs=(BY_REGION,))
    made.commit(Manifest((File(partition=("a",)),)))
    return made.metadata()


def read(folder: Path, document: object) -> Any:
    path = folder / "x.metadata.json"
    path.write_text(json.dumps(document))
    return read_metadata(str(path))


def test_a_plain_and_a_gzipped_file_say_the_same(tmp_path: Path, document: dict[str, Any]) -> None:
    plain = read(tmp_path, document)
    packed = tmp_path / "x.gz.metadata.json"
    packed.write_bytes(gzip.compress(json.dumps(document).encode()))
    found = read_metadata(f"file:{packed}")
    assert (found.table_uuid, found.snapshots) == (plain.table_uuid, plain.snapshots)
    assert found.current.timestamp_ms == FIRST_COMMIT_MS + 1000
    assert found.size_bytes == packed.stat().st_size


def test_a_v1_file_with_the_old_keys_alone(tmp_path: Path, document: dict[str, Any]) -> None:
    gone = ("schemas", "current-schema-id", "partition-specs", "sort-orders", "refs", "table-uuid")
    old = {key: value for key, value in document.items() if key not in gone}
    found = read(tmp_path, {**old, "format-version": 1, "current-snapshot-id": -1})
    assert found.partition_names == {0: ("region",)}
    assert [field.name for field in found.fields] == ["id", "region", "at"]
    assert found.current is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"current-snapshot-id": 77}, "current snapshot 77"),
        ({"format-version": "two"}, "two"),
        ({"snapshots": [{"snapshot-id": 1}]}, "timestamp-ms"),
        ({"snapshots": [{"snapshot-id": 1, "timestamp-ms": 10**18}]}, "not a time"),
        ({"snapshots": "none"}, "x.metadata.json"),
        ({"schemas": None, "schema": None}, "x.metadata.json"),
        ({"sort-orders": [{}]}, "order-id"),
    ],
)
def test_a_file_with_a_wrong_part_is_refused_and_named(
    tmp_path: Path, document: dict[str, Any], change: dict[str, Any], reason: str
) -> None:
    with pytest.raises(MetadataUnreadableError, match=r"x\.metadata\.json") as caught:
        read(tmp_path, {**document, **change})
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"\x1f\x8b broken gzip", b'{"a": 1}']
)
def test_a_file_that_is_no_metadata_is_refused_and_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.metadata.json"
    path.write_bytes(content)
    with pytest.raises(MetadataUnreadableError, match=r"bad\.metadata\.json"):
        read_metadata(str(path))


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("file:/nowhere/x.json", "is missing"),
        ("s3://bucket/x.json", "only local files"),
        ("file:/", "cannot be read"),
        ("file:/nul\x00byte", "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_had_is_named_with_the_reason(location: str, reason: str) -> None:
    with pytest.raises(MetadataUnreadableError, match=reason):
        read_metadata(location)


@pytest.mark.parametrize("prefix", ["", "file:", "file://", "file://localhost"])
def test_every_spelling_of_a_local_file(
    tmp_path: Path, document: dict[str, Any], prefix: str
) -> None:
    read(tmp_path, document)
    location = f"{prefix}{tmp_path}/x.metadata.json"
    assert read_metadata(location).location == location


def test_the_sort_order_in_words_and_its_leading_column(lake: Lake) -> None:
    order = SortOrder(
        SortField(2, IdentityTransform(), SortDirection.ASC, NullOrder.NULLS_FIRST),
        SortField(1, TruncateTransform(10), SortDirection.DESC, NullOrder.NULLS_LAST),
    )
    table = lake.create(sort_order=order)
    found = read_metadata(table.metadata_location).sort_order
    assert found is not None
    assert found.text == "region ASC NULLS FIRST, truncate[10](id) DESC NULLS LAST"
    assert found.leading is not None
    assert (found.leading.name, found.leading.type) == ("region", "string")


def test_a_bucketed_sort_column_has_no_leading_bounds(lake: Lake) -> None:
    order = SortOrder(SortField(1, BucketTransform(8), SortDirection.ASC, NullOrder.NULLS_FIRST))
    found = read_metadata(lake.create(sort_order=order).metadata_location).sort_order
    assert found is not None
    assert found.leading is None


def test_a_table_without_a_sort_order_has_none(lake: Lake) -> None:
    assert read_metadata(lake.create().metadata_location).sort_order is None
