"""Is it wired right? The merged configuration, versions, connections, and what the store holds."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from lakehouse_core.config.models import HistoryOnlyEngine
from lakehouse_core.config.show import settings
from lakehouse_core.store.tables import TABLES
from lakehouse_core.views.rows import records

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from lakehouse_core.config.loader import Loaded
    from lakehouse_core.config.models import Config, EngineConfig
    from lakehouse_core.store.port import TelemetryStore
    from lakehouse_core.store.tables import StoreTable

PACKAGES = ("lakehelm", "duckdb", "pyiceberg", "pyspark", "trino", "sqlglot", "streamlit")


def _facts_of(table: StoreTable) -> str:
    at = table.retention_time
    ends = f"min({at}), max({at})" if at else "NULL, NULL"
    return f"SELECT '{table.name}', count(*), {ends} FROM {table.name}"  # noqa: S608 names of ours


# count(*) and min/max of a DuckDB table come from its statistics: this reads no rows.
STORE_SQL = f"""
WITH facts(table_name, row_count, oldest_at, newest_at) AS (
  {" UNION ALL ".join(_facts_of(table) for table in TABLES.values())}
)
SELECT table_name, row_count, oldest_at, newest_at FROM facts
"""  # noqa: S608 names of our own tables


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingRow:
    """One value of the configuration and where it came from; secrets show their reference."""

    key: str
    value: str
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageVersion:
    """A package we stand on; None when it is not installed here."""

    package: str
    version: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Something this configuration connects to."""

    name: str
    kind: str
    address: str
    is_enabled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreTableFacts:
    """How much of one kind of telemetry there is, and from when to when."""

    table_name: str
    row_count: int
    oldest_at: datetime | None
    newest_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFacts:
    """What the store holds; `file_bytes` None when the file is not on this machine."""

    tables: tuple[StoreTableFacts, ...]
    file_bytes: int | None

    @property
    def row_count(self) -> int:
        """All rows of all tables."""
        return sum(table.row_count for table in self.tables)


def list_settings(loaded: Loaded) -> tuple[SettingRow, ...]:
    """Every value with its origin, secrets masked."""
    return tuple(
        SettingRow(key=s.key, value=_written(s.value), origin=s.origin) for s in settings(loaded)
    )


def versions() -> tuple[PackageVersion, ...]:
    """Python and the packages that matter for a bug report."""
    python = PackageVersion(package="python", version=platform.python_version())
    return (python, *(PackageVersion(package=name, version=_version(name)) for name in PACKAGES))


def connections(config: Config) -> tuple[Connection, ...]:
    """Store, catalogs, engines and gateway of this configuration."""
    store = Connection(
        name="store",
        kind="duckdb over quack",
        address=f"{config.store.host}:{config.store.port}",
        is_enabled=True,
    )
    catalogs = tuple(
        Connection(
            name=name, kind=f"{catalog.type} catalog", address=catalog.address, is_enabled=True
        )
        for name, catalog in config.catalogs.items()
    )
    engines = tuple(
        Connection(
            name=name,
            kind=f"{engine.type} engine",
            address=_address(engine),
            is_enabled=engine.enabled,
        )
        for name, engine in config.engines.items()
    )
    gateway = Connection(
        name="gateway",
        kind="admin http",
        address=f"{config.gateway.host}:{config.gateway.admin_port}",
        is_enabled=True,
    )
    return (store, *catalogs, *engines, gateway)


def store_facts(store: TelemetryStore, path: Path) -> StoreFacts:
    """Rows per table and the size of the file, its write-ahead log included."""
    tables = records(StoreTableFacts, store.read(STORE_SQL))
    files = [path, path.with_name(f"{path.name}.wal")]
    present = [file.stat().st_size for file in files if file.is_file()]
    return StoreFacts(tables=tables, file_bytes=sum(present) if present else None)


def _address(engine: EngineConfig) -> str:
    if isinstance(engine, HistoryOnlyEngine):
        return engine.url or "unknown"
    host = getattr(engine, "host", None)
    return f"{host}:{getattr(engine, 'port', '')}" if host else "embedded in our processes"


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _written(value: object) -> str:
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
