"""New files as Iceberg's `DataFile`: metrics from the footer by Iceberg's own Java code."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from spark_jobs.maintenance.arrow_files import NewFile
    from spark_jobs.maintenance.table import LakeTable


def to_data_files(table: LakeTable, partition: Any, files: Iterable[NewFile]) -> Any:
    """A Java set of the data files of one partition of the current spec."""
    iceberg = table.iceberg
    spec, io = table.java.spec(), table.java.io()
    config = iceberg.MetricsConfig.forTable(table.java)
    mapper = iceberg.util.JsonUtil.mapper()
    found = table.jvm.java.util.HashSet()
    for file in files:
        source = io.newInputFile(file.location, file.size_bytes)
        builder = (
            iceberg.DataFiles.builder(spec)
            .withInputFile(source)
            .withFormat(iceberg.FileFormat.PARQUET)
            .withMetrics(iceberg.parquet.ParquetUtil.fileMetrics(source, config))
        )
        if spec.isPartitioned():
            builder = builder.withPartition(partition)
        described = json.loads(iceberg.ContentFileParser.toJson(builder.build(), spec))
        described["split-offsets"] = list(file.split_offsets)
        described["sort-order-id"] = 0
        # Footers do not count NaN. Without the count a delete by condition may take a file for
        # one whose rows all match.
        counted = set(described.get("value-counts", {}).get("keys", ()))
        nans = {one: count for one, count in file.nan_counts.items() if one in counted}
        described["nan-value-counts"] = {"keys": list(nans), "values": list(nans.values())}
        node = mapper.readTree(json.dumps(described))
        found.add(iceberg.ContentFileParser.fromJson(node, spec))
    return found
