"""From configuration to sources: each bears its engine's name; the catalogs' is `iceberg`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakehouse_core.config.models import CollectConfig
from lakehouse_core.domain.clock import Clock, utc_now
from lakehouse_core.domain.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from collectors.base import Source
    from collectors.understanding import Understanding
    from lakehouse_core.config.models import Config
    from lakehouse_core.store.port import TelemetryStore

LAKE_SOURCE = "iceberg"


def source_names(config: Config) -> tuple[str, ...]:
    """The sources that are configured and switched on."""
    return tuple(
        name
        for name, settings in config.collect.items()
        if settings.enabled and (name not in config.engines or config.engines[name].enabled)
    )


def collect_settings(config: Config, name: str) -> CollectConfig:
    """How a source is collected; the defaults when the configuration does not say."""
    return config.collect.get(name, CollectConfig())


def check_source(name: str, config: Config) -> None:
    """Refuse a name that no source bears.

    Raises:
        ConfigError: names the known ones.
    """
    if name not in (*config.engines, LAKE_SOURCE):
        known = ", ".join((*config.engines, LAKE_SOURCE))
        raise ConfigError(f"there is no source {name!r}; the configuration knows {known}")


def build_source(
    name: str, config: Config, store: TelemetryStore, clock: Clock = utc_now
) -> Source:
    """Make a source ready to be pulled; nothing is contacted yet.

    Raises:
        ConfigError: there is no such source, or a secret it needs is missing.
    """
    if name == LAKE_SOURCE:
        from collectors.iceberg.source import iceberg_source  # noqa: PLC0415 only when wanted

        return iceberg_source(config, store, clock)
    check_source(name, config)
    engine = config.engines[name]
    from collectors.columns import LakeColumns  # noqa: PLC0415 as above
    from collectors.understanding import Understanding  # noqa: PLC0415

    collect = _Collect(
        name, collect_settings(config, name), Understanding(LakeColumns(store, clock)), clock
    )
    return _LOADERS[engine.type](engine, collect)


@dataclass(frozen=True, slots=True)
class _Collect:
    """What every loader needs besides its engine's settings."""

    name: str
    settings: CollectConfig
    understanding: Understanding
    clock: Clock


# Each loader imports its adapter itself, so that one that cannot be imported harms only itself.


def _trino(engine: Any, collect: _Collect) -> Source:
    from collectors.trino.config import trino_settings  # noqa: PLC0415
    from collectors.trino.source import TrinoSource  # noqa: PLC0415
    from lakehouse_core.config.secrets import resolve_secret  # noqa: PLC0415

    password = resolve_secret(engine.password) if engine.password is not None else None
    return TrinoSource(
        trino_settings(collect.name, engine, collect.settings, password),
        collect.understanding,
        collect.clock,
    )


def _spark(engine: Any, collect: _Collect) -> Source:
    from collectors.spark.config import event_log_settings  # noqa: PLC0415
    from collectors.spark.source import EventLogSource  # noqa: PLC0415

    if engine.history_server is not None:
        from collectors.spark.config import history_server_settings  # noqa: PLC0415
        from collectors.spark.history.source import HistoryServerSource  # noqa: PLC0415

        server = history_server_settings(
            collect.name, engine, engine.history_server, collect.settings
        )
        return HistoryServerSource(server, collect.understanding, collect.clock)
    return EventLogSource(
        event_log_settings(collect.name, engine), collect.understanding, collect.clock
    )


def _duckdb(engine: Any, collect: _Collect) -> Source:
    from collectors.duckdb.config import journal_settings  # noqa: PLC0415
    from collectors.duckdb.source import JournalSource  # noqa: PLC0415

    return JournalSource(
        journal_settings(collect.name, engine, collect.settings),
        collect.understanding,
        collect.clock,
    )


def _athena(engine: Any, collect: _Collect) -> Source:
    from collectors.athena.config import athena_settings  # noqa: PLC0415
    from collectors.athena.source import AthenaSource  # noqa: PLC0415
    from lakehouse_core.config.secrets import resolve_secret  # noqa: PLC0415

    settings = athena_settings(collect.name, engine, collect.settings, resolve_secret)
    return AthenaSource(settings, collect.understanding, collect.clock)


def _flink(engine: Any, collect: _Collect) -> Source:
    from collectors.flink.config import flink_settings  # noqa: PLC0415
    from collectors.flink.source import FlinkSource  # noqa: PLC0415
    from lakehouse_core.config.secrets import resolve_secret  # noqa: PLC0415

    password = resolve_secret(engine.password) if engine.password is not None else None
    return FlinkSource(
        flink_settings(collect.name, engine, collect.settings, password),
        collect.understanding,
        collect.clock,
    )


def _snowflake(engine: Any, collect: _Collect) -> Source:
    from collectors.snowflake.config import snowflake_settings  # noqa: PLC0415
    from collectors.snowflake.source import SnowflakeSource  # noqa: PLC0415
    from lakehouse_core.config.secrets import resolve_secret  # noqa: PLC0415

    settings = snowflake_settings(collect.name, engine, collect.settings, resolve_secret)
    return SnowflakeSource(settings, collect.understanding, collect.clock)


_LOADERS: dict[str, Callable[[Any, _Collect], Source]] = {
    "trino": _trino,
    "spark": _spark,
    "duckdb": _duckdb,
    "athena": _athena,
    "snowflake": _snowflake,
    "flink": _flink,
}
