"""What the lake says about the pipeline, read from table metadata: milliseconds, no Spark."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lakehouse_core.catalog.loader import open_catalog
from lakehouse_core.catalog.metadata import TableMetadata, read_metadata
from lakehouse_core.domain.errors import ConfigError
from lakehouse_core.domain.table import TableName

if TYPE_CHECKING:
    from lakehouse_core.config.models import Config

STATE = "lakehelm.pipeline.state"
EVENT = "query_event"


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeState:
    """Our tables and how far they are.

    Attributes:
        through: the last export that gold holds; None before the first run has ended.
        cursor: where the export after it goes on.
        run_id: the run that left this state.
        tables: our tables by name, as their current metadata has them.
    """

    through: str | None = None
    cursor: dict[str, Any] = field(default_factory=dict)
    run_id: str | None = None
    tables: dict[str, TableMetadata] = field(default_factory=dict)


def read_state(config: Config) -> LakeState:
    """The state of the pipeline's tables.

    Raises:
        ConfigError: the catalog to write to is not configured.
        CatalogError: the catalog does not answer, or a table's metadata is broken.
    """
    name, namespace = config.pipeline.catalog, config.pipeline.namespace
    settings = config.catalogs.get(name)
    if settings is None:
        raise ConfigError(
            f"pipeline.catalog is {name!r}, but catalogs has only {', '.join(config.catalogs)}"
        )
    path = getattr(settings, "path", None)
    if path is not None and not path.exists():
        return LakeState()  # the first table makes the file
    with closing(open_catalog(name, settings)) as catalog:
        located = catalog.tables((namespace,))
    tables = {table.name: read_metadata(location) for table, location in located.items()}
    kept = json.loads(tables[EVENT].properties.get(STATE, "{}")) if EVENT in tables else {}
    return LakeState(
        through=kept.get("through"),
        cursor=kept.get("cursor") or {},
        run_id=kept.get("run_id"),
        tables=tables,
    )


def table_name(config: Config, name: str) -> TableName:
    """The full name of one of our tables."""
    return TableName(config.pipeline.catalog, (config.pipeline.namespace,), name)
