"""The configuration as pydantic models: every key, its type, its default, what is allowed."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    Field,
    SecretStr,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)

from lakehouse_core.config.catalogs import CatalogConfig
from lakehouse_core.config.finops import FinOpsConfig, WorkloadGroup
from lakehouse_core.config.gateway import GatewayConfig
from lakehouse_core.config.governance import GovernanceConfig
from lakehouse_core.config.layout import LayoutConfig
from lakehouse_core.config.pricebook import PricesConfig
from lakehouse_core.config.routing import RoutingConfig
from lakehouse_core.config.section import Section
from lakehouse_core.config.types import (
    Count,
    FilePath,
    Float,
    Hours,
    Int,
    Name,
    Port,
    SecretRef,
    SettingText,
    Text,
)
from lakehouse_core.config.units import ByteSize, Duration, Interval
from lakehouse_core.domain.maintenance import Kind


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


class StoreConfig(Section):
    """The telemetry store: file, Quack endpoint, tokens, how long history stays.

    Attributes:
        retention: of queries and what was measured of them.
        cost_retention: of charges and costs, by hour, day and label; not shorter than `retention`.
    """

    path: FilePath = Path("store/telemetry.duckdb")
    spool: FilePath = Path("store/spool")
    backups: FilePath = Path("store/backups")
    host: Text = "127.0.0.1"
    port: Port = 9494
    retention: Interval = timedelta(days=90)
    cost_retention: Interval = timedelta(days=400)
    memory_limit: ByteSize = 2 * 2**30
    writer_token: SecretRef = SecretStr("file:secrets/store-writer")
    reader_token: SecretRef = SecretStr("file:secrets/store-reader")


class EngineBase(Section):
    """What every engine has."""

    catalog: Text
    enabled: bool = True
    max_running: Count = 4
    display_name: str | None = None

    @property
    def url(self) -> str | None:
        """Where clients reach it; None when it runs inside our processes."""
        return None


class DuckDBEngine(EngineBase):
    """DuckDB, embedded in our processes."""

    type: Literal["duckdb"]
    memory_limit: ByteSize = 2 * 2**30
    threads: Count = 2
    journal: FilePath = Path("history/duckdb")


class SparkEngine(EngineBase):
    """Spark through Spark Connect; `managed: true` lets `lakehelm up` start it.

    Attributes:
        event_log_keep: of a managed server: logs of ended applications that were read to their end
            are removed when they are this old.
        history_server: its history is read from this URL instead of the event logs.
    """

    type: Literal["spark"]
    managed: bool = False
    host: Text = "127.0.0.1"
    port: Port = 15002
    ui_port: Port = 4040
    master: Text = "local[*]"
    driver_memory: ByteSize = 3 * 2**30
    event_log: FilePath = Path("history/spark")
    event_log_keep: Interval = timedelta(days=7)
    history_server: Text | None = None
    conf: dict[str, SettingText] = {}

    @field_validator("history_server")
    @classmethod
    def _plain_url(cls, value: str | None) -> str | None:
        if value is not None and (not value.startswith(("http://", "https://")) or "@" in value):
            raise ValueError("expected http://host:port or https://host:port, without a password")
        return value

    @property
    def url(self) -> str:
        """Where Spark Connect clients reach it."""
        return f"sc://{_in_url(self.host)}:{self.port}"

    @property
    def ui_url(self) -> str:
        """Where its own web pages are."""
        return f"http://{_in_url(self.host)}:{self.ui_port}"


class TrinoEngine(EngineBase):
    """Trino over HTTP; `managed: true` lets `lakehelm up` start it."""

    type: Literal["trino"]
    managed: bool = False
    host: Text = "127.0.0.1"
    port: Port = 8085
    scheme: Literal["http", "https"] = "http"
    user: Text = "lakehelm"
    password: SecretRef | None = None
    heap: ByteSize = 2 * 2**30

    @property
    def url(self) -> str:
        """Where the coordinator answers."""
        return f"{self.scheme}://{_in_url(self.host)}:{self.port}"


class HistoryOnlyEngine(EngineBase):
    """An engine whose history is read; Lakehelm sends it no statement."""


class AthenaEngine(HistoryOnlyEngine):
    """Amazon Athena: the history of some workgroups of one region.

    Without keys of its own it takes what the AWS tools take: profile, environment, instance role.
    """

    type: Literal["athena"]
    region: Text
    workgroups: Annotated[tuple[Text, ...], Field(min_length=1)] = ("primary",)
    data_catalog: Text = "AwsDataCatalog"  # what Athena calls the catalog we call `catalog`
    profile: Text | None = None
    access_key_id: SecretRef | None = None
    secret_access_key: SecretRef | None = None
    session_token: SecretRef | None = None
    endpoint: Text | None = None

    @property
    def url(self) -> str:
        """The console."""
        return f"https://{self.region}.console.aws.amazon.com/athena/home?region={self.region}"

    @model_validator(mode="after")
    def _keys_are_whole(self) -> AthenaEngine:
        if (self.access_key_id is None) != (self.secret_access_key is None):
            raise ValueError("access_key_id and secret_access_key go together: give both or none")
        if self.session_token is not None and self.access_key_id is None:
            raise ValueError("session_token needs access_key_id and secret_access_key")
        if self.profile is not None and self.access_key_id is not None:
            raise ValueError("give either profile or access_key_id, not both")
        return self


class SnowflakeEngine(HistoryOnlyEngine):
    """Snowflake: its ACCOUNT_USAGE views, read with one warehouse as one role."""

    type: Literal["snowflake"]
    account: Text
    user: Text
    role: Text | None = None
    warehouse: Text | None = None
    lake_database: Text | None = None  # what it calls the catalog we call `catalog`
    database: Text = "SNOWFLAKE"
    usage_schema: Text = "ACCOUNT_USAGE"
    backfill: Interval = timedelta(days=30)
    password: SecretRef | None = None
    private_key: SecretRef | None = None  # PEM
    private_key_passphrase: SecretRef | None = None
    oauth_token: SecretRef | None = None
    host: Text | None = None
    port: Port = 443
    scheme: Literal["https", "http"] = "https"

    @property
    def url(self) -> str:
        """Where the account answers."""
        host = self.host or f"{self.account}.snowflakecomputing.com"
        return f"{self.scheme}://{_in_url(host)}" + ("" if self.port == 443 else f":{self.port}")

    @model_validator(mode="after")
    def _one_way_in(self) -> SnowflakeEngine:
        given = [s for s in (self.password, self.private_key, self.oauth_token) if s is not None]
        if len(given) != 1:
            raise ValueError("give exactly one of password, private_key and oauth_token")
        if self.private_key_passphrase is not None and self.private_key is None:
            raise ValueError("private_key_passphrase needs private_key")
        return self


class FlinkEngine(HistoryOnlyEngine):
    """Apache Flink: the jobs and checkpoints of a session or application cluster."""

    type: Literal["flink"]
    host: Text = "127.0.0.1"
    port: Port = 8081
    scheme: Literal["http", "https"] = "http"
    user: Text | None = None  # of a proxy in front of it; Flink itself asks nobody who he is
    password: SecretRef | None = None

    @property
    def url(self) -> str:
        """Where the JobManager answers."""
        return f"{self.scheme}://{_in_url(self.host)}:{self.port}"

    @model_validator(mode="after")
    def _password_has_a_user(self) -> FlinkEngine:
        if self.password is not None and self.user is None:
            raise ValueError("password needs user")
        return self


EngineConfig = Annotated[
    DuckDBEngine | SparkEngine | TrinoEngine | AthenaEngine | SnowflakeEngine | FlinkEngine,
    Field(discriminator="type"),
]


class CollectConfig(Section):
    """How often one source is read, and how far back each time."""

    enabled: bool = True
    every: Interval = timedelta(seconds=30)
    overlap: Duration = timedelta(minutes=5)
    timeout: Interval = timedelta(minutes=2)


class AgentsConfig(Section):
    """The other scheduled jobs.

    Attributes:
        circuit_opens_after: silent runs in a row after which a source is left alone and probed by
            one run at a time.
        backup_every: how old the newest backup of the store may become.
        keep_backups: how many of those made by the schedule are kept.
        learn_every: how often a model for routing is trained on the history, tried, and kept when
            it is better than the best single engine.
    """

    probe_every: Interval = timedelta(seconds=10)
    health_every: Interval = timedelta(seconds=30)
    retention_every: Interval = timedelta(hours=1)
    backup_every: Interval = timedelta(days=1)
    keep_backups: Count = 7
    learn_every: Interval = timedelta(hours=6)
    circuit_opens_after: Count = 5


class SparkJobsConfig(Section):
    """Where our own Spark jobs run: a session of their own on any master, or Spark Connect.

    With `remote` the server's own settings count: it must know the catalogs, and `conf` may hold
    only what a session may set.
    """

    master: Text = "local[2]"
    remote: Text | None = None  # sc://host:port
    driver_memory: ByteSize = 1536 * 2**20
    conf: dict[str, SettingText] = {}


class PipelineConfig(Section):
    """The telemetry pipeline: how often, where to, how its tables are kept.

    Attributes:
        landing: exports wait here; executors on other machines must see the folder too.
        overlap: how far an export looks back for rows that were written late.
        compact_after_files: files a table may gain before its small files are put together.
        expire_after_snapshots: snapshots older than `keep_snapshots` that a table may have.
        keep_snapshots: snapshots younger than this are never expired.
    """

    enabled: bool = True
    every: Interval = timedelta(minutes=15)
    timeout: Interval = timedelta(minutes=30)
    catalog: Name = "lake"
    namespace: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")] = "ops"
    landing: FilePath = Path("pipeline/landing")
    overlap: Interval = timedelta(hours=1)
    compact_after_files: Count = 24
    expire_after_snapshots: Count = 60
    keep_snapshots: Interval = timedelta(days=1)


class Threshold(Section):
    """Where a signal starts to hurt."""

    warning: Annotated[Float, Field(ge=0)]
    critical: Annotated[Float, Field(ge=0)]

    @model_validator(mode="after")
    def _in_order(self) -> Threshold:
        if self.warning > self.critical:
            raise ValueError(
                f"warning ({self.warning:g}) must not be above critical ({self.critical:g})"
            )
        return self


class ShareThreshold(Threshold):
    """A threshold on a share: between 0 and 1, not a percentage."""

    warning: Annotated[Float, Field(ge=0, le=1)]
    critical: Annotated[Float, Field(ge=0, le=1)]


class HealthThresholds(Section):
    """Limits of the health rules; one field per rule."""

    small_file_bytes: ByteSize = 32 * 2**20
    min_files: Count = 16
    small_file_share: ShareThreshold = ShareThreshold(warning=0.20, critical=0.50)
    data_files: Threshold = Threshold(warning=10_000, critical=50_000)
    snapshots: Threshold = Threshold(warning=100, critical=500)
    oldest_snapshot_days: Threshold = Threshold(warning=7, critical=30)
    delete_ratio: ShareThreshold = ShareThreshold(warning=0.10, critical=0.25)
    manifests: Threshold = Threshold(warning=100, critical=500)
    skew: Threshold = Threshold(warning=3, critical=10)


class HealthConfig(Section):
    """Thresholds for all tables, and overrides for tables whose id matches a glob pattern."""

    defaults: HealthThresholds = HealthThresholds()
    tables: dict[str, HealthThresholds] = {}

    @field_validator("tables", mode="after")
    @classmethod
    def _inherit(
        cls, tables: dict[str, HealthThresholds], info: ValidationInfo
    ) -> dict[str, HealthThresholds]:
        # What an override does not name comes from `defaults`, not from the built-in values.
        defaults: HealthThresholds | None = info.data.get("defaults")
        if defaults is None:
            return tables
        return {
            pattern: defaults.model_copy(
                update={name: getattr(override, name) for name in override.model_fields_set}
            )
            for pattern, override in tables.items()
        }


class MaintenancePolicy(Section):
    """Kinds of maintenance that need no human on some tables, within a window and a budget."""

    kinds: Annotated[tuple[Kind, ...], Field(min_length=1)]
    tables: Annotated[tuple[Text, ...], Field(min_length=1)]  # globs of table ids
    window: Hours | None = None
    max_bytes: ByteSize | None = None  # of one action


class MaintenanceConfig(Section):
    """How tables are cared for, and what must never happen.

    Attributes:
        every: how often approved work is looked for.
        recommend_every: how often tables are looked at for proposals.
        evidence_window: whose queries count as evidence.
        expires_after: how long a proposal stands.
        four_eyes: whoever proposed an action by hand may not approve it.
        quiet_period: partitions written within it are left alone.
        max_running: actions at a time, over all tables.
        bytes_per_day: what may be rewritten within a day, over all tables.
        max_attempts: how often an action is tried when it meets writers.
        keep_snapshots: snapshots younger than this are never expired.
        min_snapshots: that many are always kept.
        orphan_age: younger files are never removed; at least 24 h.
        target_file_bytes: size of rewritten files, where the table does not say.
        min_difference: a smaller gain than this share is not worth a proposal.
        lease: how long a silent holder keeps a table.
        notify: channels of `finops.channels` that hear of an action whose check failed.
    """

    enabled: bool = True
    every: Interval = timedelta(seconds=5)
    recommend_every: Interval = timedelta(minutes=2)
    evidence_window: Interval = timedelta(days=30)
    expires_after: Interval = timedelta(days=7)
    four_eyes: bool = False
    quiet_period: Duration = timedelta(minutes=10)
    max_running: Count = 1
    bytes_per_day: ByteSize = 500 * 2**30
    max_attempts: Count = 3
    timeout: Interval = timedelta(hours=2)
    keep_snapshots: Interval = timedelta(days=5)
    min_snapshots: Count = 5
    orphan_age: Annotated[Interval, Field(ge=timedelta(hours=24))] = timedelta(hours=72)
    target_file_bytes: ByteSize = 128 * 2**20
    min_difference: Annotated[Float, Field(ge=0, le=1)] = 0.10
    lease: Interval = timedelta(minutes=2)
    policies: tuple[MaintenancePolicy, ...] = ()
    notify: tuple[Name, ...] = ()


class UiConfig(Section):
    """Where the pages are served."""

    host: Text = "127.0.0.1"
    port: Port = 8501


class DemoConfig(Section):
    """The demo lakehouse: how large, which seed, whether a workload runs."""

    scale: Annotated[Float, Field(gt=0, le=100)] = 0.1
    seed: Int = 42
    workload: bool = True


class LoggingConfig(Section):
    """How much our processes say."""

    level: Literal["debug", "info", "warning", "error"] = "info"


class Config(Section):
    """The whole configuration; paths are absolute after loading."""

    version: Literal[1]
    profile: Text = "demo"
    home: FilePath = Path("../var")
    store: StoreConfig = StoreConfig()
    catalogs: dict[Name, CatalogConfig]
    engines: dict[Name, EngineConfig]
    collect: dict[Name, CollectConfig] = {}
    agents: AgentsConfig = AgentsConfig()
    spark: SparkJobsConfig = SparkJobsConfig()
    pipeline: PipelineConfig = PipelineConfig()
    health: HealthConfig = HealthConfig()
    maintenance: MaintenanceConfig = MaintenanceConfig()
    workload_groups: tuple[WorkloadGroup, ...] = ()
    finops: FinOpsConfig = FinOpsConfig()
    layout: LayoutConfig = LayoutConfig()
    prices: PricesConfig = PricesConfig()
    gateway: GatewayConfig = GatewayConfig()
    governance: GovernanceConfig = GovernanceConfig()
    routing: RoutingConfig = RoutingConfig()
    ui: UiConfig = UiConfig()
    demo: DemoConfig = DemoConfig()
    logging: LoggingConfig = LoggingConfig()

    @model_validator(mode="after")
    def _prices_know_the_engines(self) -> Config:
        self.prices.know({name: one.type for name, one in self.engines.items()})
        return self
