"""The `routing` section: QueryFlux's keys, spelt as its files spell them, and ours beside them.

Credentials in a QueryFlux file are dropped while reading: how an engine is reached, and as whom, is
said once, under `engines`.
"""
# ruff: noqa: N815 the keys are QueryFlux's

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from lakehouse_core.config.section import Section
from lakehouse_core.config.types import Count, FilePath, Float, Int, Name, Port, SettingText, Text

PROTOCOLS = (
    *("trinoHttp", "postgresWire", "mysqlWire", "clickhouseHttp", "flightSql"),
    *("snowflakeHttp", "snowflakeSqlApi", "mcp", "console"),
)
# QueryFlux's names of engine types and ours; a name that is not here is taken as it is.
ENGINE_TYPES = {"duckDb": "duckdb", "duckDbHttp": "duckdb", "starRocks": "starrocks"} | {
    "clickHouse": "clickhouse"
}
DEFAULT_WAIT_SECONDS = 300
# Keys of a QueryFlux cluster that say how to reach it; nothing here connects by them.
_CONNECTION_KEYS = frozenset(
    {
        *("poolSize", "databasePath", "region", "s3OutputLocation", "workgroup", "catalog"),
        *("maxWaitSecs", "maxResultBufferBytes", "driver", "uri", "tls", "auth", "queryAuth"),
        *("healthCheckQuery", "reconcileQuery", "dbKwargs", "warehouse", "max_connections"),
    }
)
# Sections of a QueryFlux file that are about something else than routing.
FOREIGN_SECTIONS = frozenset(
    {
        *("queryflux", "auth", "authorization", "adminApi", "guardrails", "accessControl"),
        "catalogProvider",
    }
)
OLDER_SPELLINGS = {"cluster_groups": "clusterGroups", "routing_fallback": "routingFallback"}

Limit = Annotated[Int, Field(ge=0)]
Share = Annotated[Float, Field(ge=0, le=0.5)]
Percent = Annotated[Int, Field(ge=1, le=100)]


def _regular(value: object) -> object:
    if isinstance(value, str):
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from error
    return value


def _python(value: object) -> object:
    if isinstance(value, str):
        try:
            compile(value, "script", "exec")
        except (SyntaxError, ValueError) as error:
            raise ValueError(f"not Python: {error}") from error
    return value


Regex = Annotated[Text, BeforeValidator(_regular)]
Script = Annotated[str, BeforeValidator(_python)]


class Outcome(Section):
    """Where a matching statement goes, or that it is refused; QueryFlux denies by regex only."""

    targetGroup: Text | None = None
    action: Literal["route", "deny"] = "route"
    error: Text | None = None

    @model_validator(mode="after")
    def _goes_somewhere(self) -> Outcome:
        if self.action == "route" and self.targetGroup is None:
            raise ValueError("targetGroup is missing: name the group, or set action: deny")
        return self


class ProtocolRouter(Section):
    """By the protocol of the client."""

    type: Literal["protocolBased"]
    trinoHttp: Text | None = None
    postgresWire: Text | None = None
    mysqlWire: Text | None = None
    clickhouseHttp: Text | None = None
    flightSql: Text | None = None
    snowflakeHttp: Text | None = None
    snowflakeSqlApi: Text | None = None
    mcp: Text | None = None
    console: Text | None = None


class HeaderRouter(Section):
    """By the value of one header."""

    type: Literal["header"]
    headerName: Text
    headerValueToGroup: dict[str, Text]


class HeaderRule(Outcome):
    """One header with one value."""

    header: Text
    value: str


class HeaderRulesRouter(Section):
    """By headers, in QueryFlux's older form."""

    type: Literal["headerBased"]
    rules: tuple[HeaderRule, ...]


class UserRouter(Section):
    """By the name of the user."""

    type: Literal["userGroup"]
    userToGroup: dict[str, Text]


class RegexRule(Outcome):
    """One pattern, looked for anywhere in the text."""

    regex: Regex


class RegexRouter(Section):
    """By the text; its first rule that matches decides."""

    type: Literal["queryRegex"]
    rules: tuple[RegexRule, ...]


class TagRule(Outcome):
    """Tags that must all be there; null: with any value or none."""

    tags: Annotated[dict[str, SettingText | None], Field(min_length=1)]


class TagsRouter(Section):
    """By tags; its first rule that matches decides."""

    type: Literal["tags"]
    rules: tuple[TagRule, ...]


class Scripted(Section):
    """Something decided by a script, given here or in a file; the file wins."""

    script: Script | None = None
    scriptFile: FilePath | None = None

    @model_validator(mode="after")
    def _has_a_script(self) -> Scripted:
        if self.script is None and self.scriptFile is None:
            raise ValueError("give script or scriptFile")
        return self


class ScriptRouter(Scripted):
    """By a function `route(query, ctx)` that gives a group or None."""

    type: Literal["pythonScript"]


class ProtocolCondition(Section):
    """The client's protocol."""

    type: Literal["protocol"]
    protocol: Text

    @field_validator("protocol")
    @classmethod
    def _is_known(cls, value: str) -> str:
        if value not in PROTOCOLS:
            raise ValueError(f"no such protocol; there are {', '.join(PROTOCOLS)}")
        return value


class HeaderCondition(Section):
    """A header with a value."""

    type: Literal["header"]
    headerName: Text
    headerValue: str


class UserCondition(Section):
    """The name of the user."""

    type: Literal["user"]
    username: Text


class TagCondition(Section):
    """A tag as the client sent it."""

    type: Literal["clientTag"]
    tag: Text


class RegexCondition(Section):
    """A pattern in the text."""

    type: Literal["queryRegex"]
    regex: Regex


Condition = Annotated[
    ProtocolCondition | HeaderCondition | UserCondition | TagCondition | RegexCondition,
    Field(discriminator="type"),
]


class CompoundRouter(Outcome):
    """By several conditions together; none at all never match."""

    type: Literal["compound"]
    combine: Literal["all", "any"] = "all"
    conditions: tuple[Condition, ...]


class TrinoGatewayRouter(Section):
    """By a rule file of trino-gateway: all rules that match fire, the last word stands."""

    type: Literal["trinoGateway"]
    rulesFile: FilePath


RouterConfig = Annotated[
    ProtocolRouter
    | HeaderRouter
    | HeaderRulesRouter
    | UserRouter
    | RegexRouter
    | TagsRouter
    | ScriptRouter
    | CompoundRouter
    | TrinoGatewayRouter,
    Field(discriminator="type"),
]


class PlainStrategy(Section):
    """A strategy that needs no more than its name."""

    type: Literal[
        "roundRobin",
        "leastLoaded",
        "failover",
        "costOptimized",
        "latencyOptimized",
        "throughputBalanced",
    ]


class AffinityStrategy(Section):
    """Types of engines in order of preference; the least loaded of a type."""

    type: Literal["engineAffinity"]
    preference: Annotated[tuple[Text, ...], Field(min_length=1)]


class WeightedStrategy(Section):
    """Shares of the traffic; a member that is not named has none."""

    type: Literal["weighted"]
    weights: Annotated[dict[str, Limit], Field(min_length=1)]

    @field_validator("weights")
    @classmethod
    def _some_weight(cls, value: dict[str, int]) -> dict[str, int]:
        if not any(value.values()):
            raise ValueError("all weights are 0: nothing would run")
        return value


class ScriptStrategy(Scripted):
    """A function `select_cluster(candidates)` that gives a member or None."""

    type: Literal["pythonScript"]


StrategyConfig = Annotated[
    PlainStrategy | AffinityStrategy | WeightedStrategy | ScriptStrategy,
    Field(discriminator="type"),
]


class BreakerConfig(Section):
    """When a member that fails is left alone, and for how long."""

    windowSecs: Count = 60
    minRequests: Annotated[Count, Field(le=10_000)] = 10
    failureRatePercent: Percent = 50
    timeoutRatePercent: Percent = 25
    initialBackoffSecs: Count = 30
    maxBackoffSecs: Count = 300

    @model_validator(mode="after")
    def _in_order(self) -> BreakerConfig:
        if self.maxBackoffSecs < self.initialBackoffSecs:
            raise ValueError("maxBackoffSecs must not be below initialBackoffSecs")
        return self


class VariantConfig(Section):
    """A cluster of its own, named `base::name`, that differs from its base in some keys."""

    name: Text
    overrides: dict[str, Any] = Field(default_factory=dict)
    maxRunningQueries: Count | None = None

    @field_validator("name")
    @classmethod
    def _without_colons(cls, value: str) -> str:
        if "::" in value:
            raise ValueError("must not have :: in it, which parts it from its base")
        return value


class ClusterConfig(Section):
    """A member of groups: an engine under a name of its own.

    Attributes:
        engine: its type, in QueryFlux's words or ours.
        engineId: the engine of `engines` that it is; by default the one of the same name, or else
            the one of the same type and address.
        maxRunningQueries: statements at a time, over all groups.
        endpoint: its address.
        variants: further clusters made from this one, which then is none itself.
    """

    engine: Text | None = None
    engineId: Name | None = None
    enabled: bool = True
    maxRunningQueries: Count | None = None
    endpoint: Text | None = None
    variants: tuple[VariantConfig, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _without_connection(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        return {key: value for key, value in data.items() if key not in _CONNECTION_KEYS}

    @property
    def engine_type(self) -> str | None:
        """Its type in our words."""
        return None if self.engine is None else ENGINE_TYPES.get(self.engine, self.engine)


class NamedCluster(ClusterConfig):
    """A cluster written inside its group, as older QueryFlux files have it."""

    name: Text


class AuthorizationConfig(Section):
    """Who may use a group; nobody named: everybody."""

    allowGroups: tuple[Text, ...] = ()
    allowUsers: tuple[Text, ...] = ()


class PredictionConfig(Section):
    """What a group asks of strategies that choose by the past.

    Attributes:
        latencyBoundSecs: only engines are chosen whose 95th percentile keeps it: with
            costOptimized, the cheapest that is fast enough.
        exploreShare: of its reads, how many may be tried on an engine little is known of; 0: none.
            Where latencyBoundSecs is set nothing is tried.
        exploreBudget: what tries may cost, as a share of what all its statements take.
    """

    latencyBoundSecs: Annotated[Float, Field(gt=0)] | None = None
    exploreShare: Share = 0.02
    exploreBudget: Share = 0.02


class ShadowConfig(Section):
    """Reads that are run once more, on a second engine, to have evidence about it; off by default.

    Attributes:
        share: of the group's reads, how many may be; 0: none.
        budget: what they may take and cost, as a share of what all its reads do.
        maxRunning: at a time, over all members of the group.
        timeoutSecs: what takes longer is stopped.
    """

    share: Share = 0.0
    budget: Share = 0.05
    maxRunning: Count = 1
    timeoutSecs: Count = 60


class GroupConfig(Section):
    """Members that stand in for each other.

    Attributes:
        maxRunningQueries: statements at a time on each member, of this group's.
        maxQueuedQueries: how many may wait; 0: none, null: any number.
        capacityWaitTimeoutSecs: how long they wait.
        defaultTags: given to every statement of the group that does not have them.
        priority: larger goes first.
        fallbackGroup: takes over when no member can take a statement at once.
        prediction: what costOptimized and latencyOptimized keep to.
        shadow: which reads are run once more to learn from them.
        cache: QueryFlux's result cache; read and left alone.
        engine: type of the clusters below.
        clusters: members, in QueryFlux's older form.
    """

    enabled: bool = True
    members: tuple[Text, ...] = ()
    strategy: StrategyConfig | None = None
    circuitBreaker: BreakerConfig = BreakerConfig()
    maxRunningQueries: Count | None = None
    maxQueuedQueries: Limit | None = None
    capacityWaitTimeoutSecs: Limit | None = None
    authorization: AuthorizationConfig = AuthorizationConfig()
    defaultTags: dict[str, SettingText | None] = Field(default_factory=dict)
    priority: Int = 0
    fallbackGroup: Text | None = None
    prediction: PredictionConfig = PredictionConfig()
    shadow: ShadowConfig = ShadowConfig()
    cache: dict[str, Any] | None = None
    engine: Text | None = None
    clusters: tuple[NamedCluster, ...] = ()

    @model_validator(mode="after")
    def _has_members(self) -> GroupConfig:
        if not self.members and not self.clusters:
            raise ValueError("members is missing: name at least one")
        return self

    @property
    def wait_seconds(self) -> int:
        """How long a statement waits for its turn."""
        return self.capacityWaitTimeoutSecs or DEFAULT_WAIT_SECONDS


class EndpointConfig(Section):
    """A named way in, with a path or a port of its own.

    Attributes:
        path: below the gateway's address, e.g. /bi.
        group: all its statements go there; by default the routers decide.
        pool: members of a group of its own, instead of `group`.
        strategy: of that pool.
        maxRunningQueries: statements at a time that came this way.
        maxQueuedQueries: how many of them may wait.
        priority: instead of the group's.
        fallbackGroup: instead of the group's.
    """

    path: Text | None = None
    port: Port | None = None
    group: Text | None = None
    pool: tuple[Text, ...] = ()
    strategy: StrategyConfig | None = None
    maxRunningQueries: Count | None = None
    maxQueuedQueries: Limit | None = None
    priority: Int | None = None
    fallbackGroup: Text | None = None
    authorization: AuthorizationConfig = AuthorizationConfig()

    @field_validator("path")
    @classmethod
    def _from_the_root(cls, value: str | None) -> str | None:
        if value is None:
            return None
        if not value.startswith("/") or value == "/" or str(PurePosixPath(value)) != value:
            raise ValueError("a path starts with / and has no empty part, e.g. /bi")
        if value == "/v1" or value.startswith("/v1/"):
            raise ValueError("/v1 is where clients of the whole gateway come in; choose another")
        return value

    @model_validator(mode="after")
    def _one_way(self) -> EndpointConfig:
        if self.path is None and self.port is None:
            raise ValueError("give path or port: otherwise nobody can reach it")
        if self.group is not None and self.pool:
            raise ValueError("give either group or pool, not both")
        if self.strategy is not None and not self.pool:
            raise ValueError("strategy belongs to a pool; a group has its own")
        return self


class TranslationConfig(Section):
    """What happens when a text cannot be said in an engine's dialect."""

    mode: Literal["bestEffort", "strict"] = "bestEffort"
    errorOnUnsupported: bool = False
    pythonScripts: tuple[Script, ...] = ()
    schemaResolutionTimeoutMs: Count = 1500

    @property
    def is_strict(self) -> bool:
        """Whether such a text is refused."""
        return self.mode == "strict" or self.errorOnUnsupported


class RoutingConfig(Section):
    """Who runs what; without any of it every engine is a group and all together are the default.

    Attributes:
        file: a file of these keys, such as QueryFlux's own, instead of those below.
        routingFallback: the group of what no router claims.
    """

    file: FilePath | None = None
    clusters: dict[str, ClusterConfig] = Field(default_factory=dict)
    clusterGroups: dict[str, GroupConfig] = Field(default_factory=dict)
    routers: tuple[RouterConfig, ...] = ()
    routingFallback: str | None = None
    translation: TranslationConfig = TranslationConfig()
    endpoints: dict[Name, EndpointConfig] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _here_or_there(self) -> RoutingConfig:
        here = {"clusters", "clusterGroups", "routers", "routingFallback"} & self.model_fields_set
        if self.file is not None and here:
            raise ValueError(f"routing is in {self.file.name}: take {', '.join(sorted(here))} out")
        return self
