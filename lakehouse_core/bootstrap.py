"""The one place where adapters meet services."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.query import QueryEvent
    from lakehouse_core.engines.base import Engine
    from lakehouse_core.gateway.intake import Intake
    from lakehouse_core.gateway.record import Understand
    from lakehouse_core.gateway.sqlport import SqlPort
    from lakehouse_core.store.client import StoreClient
    from lakehouse_core.store.port import TelemetryStore

Role = Literal["writer", "reader"]


def open_store(config: Config, role: Role = "reader") -> StoreClient:
    """A connection to the telemetry store for any process but its owner.

    Opening does not need the owner to be there: reads say so when it is not, writes are spooled.

    Raises:
        StoreUnavailableError: Lakehelm was never started here; says what to start.
        ConfigError: the token cannot be read.
    """
    from lakehouse_core.config.secrets import resolve_secret  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.domain.errors import (  # noqa: PLC0415 as above
        ConfigError,
        StoreUnavailableError,
    )
    from lakehouse_core.store.client import StoreClient  # noqa: PLC0415 as above

    reference = config.store.writer_token if role == "writer" else config.store.reader_token
    try:
        token = resolve_secret(reference)
    except ConfigError as error:
        # The first start makes the token files; a store alone may be there before (`collect`).
        if isinstance(error.__cause__, FileNotFoundError):
            raise StoreUnavailableError(
                f"Lakehelm does not run, and never did in {config.home}: start it with "
                f"`lakehelm up` (it makes the store's token, {reference.get_secret_value()})"
            ) from error
        raise
    return StoreClient(config.store, token=token, role=role)


def open_engine(config: Config, name: str) -> Engine:
    """The executing adapter of a configured engine.

    Raises:
        ConfigError: no engine has this name.
    """
    from lakehouse_core.domain.query import EngineId  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.engines import registry  # noqa: PLC0415 as above

    return registry.open_engine(EngineId(name), config)


@dataclass(frozen=True, slots=True, kw_only=True)
class Intakes:
    """What understands the payloads that engines push to the gateway."""

    trino: Intake
    reports: Intake


def open_intakes(config: Config, store: TelemetryStore) -> Intakes:
    """The collectors' mappings for the gateway's ingest, which does not know collectors.

    Args:
        config: whose events to expect.
        store: says which columns the lake's tables have.
    """
    from collectors.columns import LakeColumns  # noqa: PLC0415 keeps --help fast
    from collectors.reports.intake import ReportIntake  # noqa: PLC0415 keeps --help fast
    from collectors.trino.listener import ListenerSettings, TrinoIntake  # noqa: PLC0415 as above
    from collectors.understanding import Understanding  # noqa: PLC0415 as above
    from lakehouse_core.config.models import TrinoEngine  # noqa: PLC0415 as above
    from lakehouse_core.domain.query import EngineId  # noqa: PLC0415 as above

    engines = [
        ListenerSettings(engine_id=EngineId(name), url=engine.url)
        for name, engine in config.engines.items()
        if isinstance(engine, TrinoEngine) and engine.enabled
    ]
    return Intakes(
        trino=TrinoIntake(engines, Understanding(LakeColumns(store))),
        reports=ReportIntake(tuple(config.catalogs)),
    )


def open_sql_port(
    config: Config, store: StoreClient, reread: Callable[[], Config] | None = None
) -> SqlPort:
    """The port that SQL clients connect to, with everything behind it; nothing listens yet.

    Args:
        config: the configuration.
        store: where the engines' states are.
        reread: the configuration as it stands now, for a reload of the routing rules.

    Raises:
        ConfigError: routing, users, tokens or an engine are configured wrongly.
    """
    from lakehouse_core.gateway.assemble import assemble  # noqa: PLC0415 keeps --help fast

    return assemble(config, store, _understand(store), reread)


def _understand(store: TelemetryStore) -> Understand:
    """What the collectors make of query events, for a gateway that does not know collectors."""
    from collectors.columns import LakeColumns  # noqa: PLC0415 keeps --help fast
    from collectors.understanding import Observed, Understanding  # noqa: PLC0415 as above
    from lakehouse_core.domain.table import split_name  # noqa: PLC0415 as above

    understanding = Understanding(LakeColumns(store))

    def rows(events: Sequence[QueryEvent]) -> Mapping[str, pa.Table]:
        return understanding.rows(
            [
                Observed(
                    event,
                    event.default_catalog,
                    split_name(event.default_namespace) if event.default_namespace else (),
                )
                for event in events
            ]
        )

    return rows
