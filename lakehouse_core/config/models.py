"""The configuration as pydantic models: every key, its type, its default, what is allowed."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from lakehouse_core.config.units import ByteSize, Duration

Port = Annotated[int, Field(ge=1, le=65_535)]


class Section(BaseModel):
    """Base of all sections: unknown keys are refused, values never change after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class StoreConfig(Section):
    """The telemetry store: file, Quack endpoint, tokens, how long history stays."""

    path: Path = Path("store/telemetry.duckdb")
    spool: Path = Path("store/spool")
    backups: Path = Path("store/backups")
    host: str = "127.0.0.1"
    port: Port = 9494
    retention: Duration = timedelta(days=90)
    memory_limit: ByteSize = 2 * 2**30
    writer_token: SecretStr = SecretStr("file:secrets/store-writer")
    reader_token: SecretStr = SecretStr("file:secrets/store-reader")


class SqliteCatalog(Section):
    """The Iceberg JDBC catalog on an SQLite file, warehouse on local files."""

    type: Literal["sqlite"]
    path: Path
    warehouse: Path


CatalogConfig = SqliteCatalog


class EngineBase(Section):
    """What every engine has."""

    catalog: str
    enabled: bool = True
    max_running: Annotated[int, Field(ge=1)] = 4
    display_name: str | None = None


class DuckDBEngine(EngineBase):
    """DuckDB, embedded in our processes."""

    type: Literal["duckdb"]
    memory_limit: ByteSize = 2 * 2**30
    threads: Annotated[int, Field(ge=1)] = 2
    journal: Path = Path("history/duckdb")


class SparkEngine(EngineBase):
    """Spark through Spark Connect; `managed: true` lets `lakehelm up` start it."""

    type: Literal["spark"]
    managed: bool = False
    host: str = "127.0.0.1"
    port: Port = 15002
    ui_port: Port = 4040
    master: str = "local[*]"
    driver_memory: ByteSize = 3 * 2**30
    event_log: Path = Path("history/spark")
    conf: dict[str, str] = {}


class TrinoEngine(EngineBase):
    """Trino over HTTP; `managed: true` lets `lakehelm up` start it."""

    type: Literal["trino"]
    managed: bool = False
    host: str = "127.0.0.1"
    port: Port = 8085
    scheme: Literal["http", "https"] = "http"
    user: str = "lakehelm"
    password: SecretStr | None = None
    heap: ByteSize = 2 * 2**30


EngineConfig = Annotated[DuckDBEngine | SparkEngine | TrinoEngine, Field(discriminator="type")]


class CollectConfig(Section):
    """How often one source is read, and how far back each time."""

    enabled: bool = True
    every: Duration = timedelta(seconds=30)
    overlap: Duration = timedelta(minutes=5)
    timeout: Duration = timedelta(minutes=2)


class AgentsConfig(Section):
    """The other scheduled jobs."""

    probe_every: Duration = timedelta(seconds=10)
    health_every: Duration = timedelta(seconds=30)
    retention_every: Duration = timedelta(hours=1)


class Threshold(Section):
    """Where a signal starts to hurt."""

    warning: float
    critical: float


class HealthThresholds(Section):
    """Limits of the health rules; one field per rule."""

    small_file_bytes: ByteSize = 32 * 2**20
    min_files: Annotated[int, Field(ge=1)] = 16
    small_file_share: Threshold = Threshold(warning=0.20, critical=0.50)
    data_files: Threshold = Threshold(warning=10_000, critical=50_000)
    snapshots: Threshold = Threshold(warning=100, critical=500)
    oldest_snapshot_days: Threshold = Threshold(warning=7, critical=30)
    delete_ratio: Threshold = Threshold(warning=0.10, critical=0.25)
    manifests: Threshold = Threshold(warning=100, critical=500)
    skew: Threshold = Threshold(warning=3, critical=10)


class HealthConfig(Section):
    """Thresholds for all tables, and overrides for tables whose id matches a glob pattern."""

    defaults: HealthThresholds = HealthThresholds()
    tables: dict[str, HealthThresholds] = {}


class GatewayConfig(Section):
    """Where the gateway listens."""

    host: str = "127.0.0.1"
    admin_port: Port = 8090


class UiConfig(Section):
    """Where the pages are served."""

    host: str = "127.0.0.1"
    port: Port = 8501


class DemoConfig(Section):
    """The demo lakehouse: how large, which seed, whether a workload runs."""

    scale: Annotated[float, Field(gt=0, le=100)] = 0.1
    seed: int = 42
    workload: bool = True


class LoggingConfig(Section):
    """How much our processes say."""

    level: Literal["debug", "info", "warning", "error"] = "info"


class Config(Section):
    """The whole configuration; paths are absolute after loading."""

    version: Literal[1]
    profile: str = "demo"
    home: Path = Path("../var")
    store: StoreConfig = StoreConfig()
    catalogs: dict[str, CatalogConfig]
    engines: dict[str, EngineConfig]
    collect: dict[str, CollectConfig] = {}
    agents: AgentsConfig = AgentsConfig()
    health: HealthConfig = HealthConfig()
    gateway: GatewayConfig = GatewayConfig()
    ui: UiConfig = UiConfig()
    demo: DemoConfig = DemoConfig()
    logging: LoggingConfig = LoggingConfig()
