"""Whose files lie where: a location that two tables share is nobody's to clean up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakehouse_core.domain.table import TableName

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spark_jobs.maintenance.table import LakeTable, Metadata

PLACES = ("write.data.path", "write.metadata.path", "write.folder-storage.path")


def overlapping(table: LakeTable, metadata: Metadata) -> list[str]:
    """Tables of the catalog that share a place with this one, or lie within one another."""
    mine = _places(metadata.location, metadata.properties)
    found = []
    for name, java in _other_tables(table):
        theirs = _places(str(java.location()), dict(java.properties()))
        if any(_is_within(a, b) or _is_within(b, a) for a in mine for b in theirs):
            found.append(str(name))
    return sorted(found)


def _other_tables(table: LakeTable) -> Iterator[tuple[TableName, Any]]:
    iceberg = table.iceberg
    catalog = iceberg.spark.Spark3Util.loadIcebergCatalog(
        table.spark._jsparkSession, table.name.catalog
    )
    waiting = list(catalog.listNamespaces())
    while waiting:
        namespace = waiting.pop()
        waiting += list(catalog.listNamespaces(namespace))
        levels = tuple(str(one) for one in namespace.levels())
        for one in catalog.listTables(namespace):
            name = TableName(table.name.catalog, levels, str(one.name()))
            if name != table.name:
                yield name, catalog.loadTable(one)


def _places(location: str, properties: dict[str, str]) -> set[tuple[str, str]]:
    return {split(one) for one in (location, *(properties.get(key, "") for key in PLACES)) if one}


def split(location: str) -> tuple[str, str]:
    """Authority and path, without scheme and doubled slashes.

    >>> split("s3a://bucket/t//a.parquet"), split("file:/t/a#1"), split("file:///t/"), split("/t")
    (('bucket', '/t/a.parquet'), ('', '/t/a#1'), ('', '/t'), ('', '/t'))
    """
    scheme, mark, rest = location.partition("://")
    if mark and "/" not in scheme:
        authority, _, path = rest.partition("/")
    else:
        authority, path = "", location if location.startswith("/") else location.partition(":")[2]
    return authority, "/" + "/".join(part for part in path.split("/") if part)


def _is_within(inner: tuple[str, str], outer: tuple[str, str]) -> bool:
    is_same_host = inner[0] == outer[0] or not inner[0] or not outer[0]
    return is_same_host and f"{inner[1]}/".startswith(f"{outer[1]}/")
