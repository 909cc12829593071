"""From the configuration to an executing adapter; a new engine type is one entry in `LOADERS`.

Each loader imports its adapter when it is called, so that nobody pays for a driver he does not use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakehouse_core.domain.errors import ConfigError
from lakehouse_core.domain.query import EngineId

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lakehouse_core.config.models import Config, EngineConfig
    from lakehouse_core.domain.engine import EngineCapabilities
    from lakehouse_core.engines.base import Engine


def _open_duckdb(engine_id: EngineId, engine: Any, config: Config) -> Engine:
    from lakehouse_core.engines.duckdb.adapter import DuckDBAdapter  # noqa: PLC0415 lazy on purpose

    return DuckDBAdapter(engine_id, engine, config.catalogs[engine.catalog])


def _open_spark(engine_id: EngineId, engine: Any, config: Config) -> Engine:
    from lakehouse_core.engines.spark.adapter import SparkAdapter  # noqa: PLC0415 as above

    del config
    return SparkAdapter(engine_id, engine)


def _open_trino(engine_id: EngineId, engine: Any, config: Config) -> Engine:
    from lakehouse_core.config.secrets import resolve_secret  # noqa: PLC0415 as above
    from lakehouse_core.engines.trino.adapter import TrinoAdapter  # noqa: PLC0415 as above

    del config
    password = resolve_secret(engine.password) if engine.password else None
    return TrinoAdapter(engine_id, engine, password)


def _open_history_only(engine_id: EngineId, engine: Any, config: Config) -> Engine:
    from lakehouse_core.engines.history_only import HistoryOnlyAdapter  # noqa: PLC0415 as above

    del config
    return HistoryOnlyAdapter(engine_id, engine)


def _open_flink(engine_id: EngineId, engine: Any, config: Config) -> Engine:
    from lakehouse_core.config.secrets import resolve_secret  # noqa: PLC0415 as above
    from lakehouse_core.engines.flink import FlinkAdapter  # noqa: PLC0415 as above

    del config
    password = resolve_secret(engine.password) if engine.password else None
    return FlinkAdapter(engine_id, engine, password)


LOADERS: Mapping[str, Callable[[EngineId, Any, Config], Engine]] = {
    "duckdb": _open_duckdb,
    "spark": _open_spark,
    "trino": _open_trino,
    "athena": _open_history_only,
    "snowflake": _open_history_only,
    "flink": _open_flink,
}


def _duckdb_capabilities() -> EngineCapabilities:
    from lakehouse_core.engines.duckdb.adapter import CAPABILITIES  # noqa: PLC0415 as above

    return CAPABILITIES


def _spark_capabilities() -> EngineCapabilities:
    from lakehouse_core.engines.spark.adapter import CAPABILITIES  # noqa: PLC0415 as above

    return CAPABILITIES


def _trino_capabilities() -> EngineCapabilities:
    from lakehouse_core.engines.trino.adapter import CAPABILITIES  # noqa: PLC0415 as above

    return CAPABILITIES


_CAPABILITIES: Mapping[str, Callable[[], EngineCapabilities]] = {
    "duckdb": _duckdb_capabilities,
    "spark": _spark_capabilities,
    "trino": _trino_capabilities,
}


def capabilities_of(engine: EngineConfig) -> EngineCapabilities | None:
    """What an engine of this configuration can do; None: nothing is sent to it."""
    known = _CAPABILITIES.get(engine.type)
    return known() if known else None


def open_engine(engine_id: str, config: Config) -> Engine:
    """Open a configured engine; nothing is sent to it before it is asked something.

    Raises:
        ConfigError: there is no engine of this id.
    """
    engine = config.engines.get(engine_id)
    if engine is None:
        known = ", ".join(sorted(config.engines)) or "none"
        raise ConfigError(f"There is no engine {engine_id!r}; configured are: {known}")
    return LOADERS[engine.type](EngineId(engine_id), engine, config)
