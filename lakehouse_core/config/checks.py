"""What no single key can tell: references between sections, ports that collide."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lakehouse_core.config.catalogs import RestCatalog
from lakehouse_core.config.models import DuckDBEngine, SparkEngine, TrinoEngine
from lakehouse_core.config.price_checks import check_prices
from lakehouse_core.config.problems import Finding, nearest
from lakehouse_core.config.routing_checks import check_routing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakehouse_core.config.models import Config
    from lakehouse_core.config.problems import KeyPath

# Sources that are not engines. A source that reads an engine's history bears the engine's name.
EXTRA_SOURCES = ("iceberg",)
_LAST_PORT = 65_535
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_ANYWHERE = ("0.0.0.0", "::")  # noqa: S104 names to compare with, nothing is bound here


@dataclass(frozen=True, slots=True)
class _Listener:
    path: KeyPath
    host: str
    port: int
    is_ours: bool
    note: str = ""


def check(config: Config) -> list[Finding]:
    """Run every check."""
    return [finding for rule in _CHECKS for finding in rule(config)]


def _engines_use_known_catalogs(config: Config) -> Iterator[Finding]:
    for name, engine in config.engines.items():
        if engine.catalog not in config.catalogs:
            yield Finding(
                path=("engines", name, "catalog"),
                message="no such catalog",
                allowed=", ".join(config.catalogs) or "none: `catalogs` is empty",
                nearest=nearest(engine.catalog, config.catalogs),
            )


def _the_demo_lake_is_embedded(config: Config) -> Iterator[Finding]:
    """`lakehelm up` builds the demo tables itself, in a catalog that nobody else owns."""
    if config.profile != "demo":
        return
    for engine in config.engines.values():
        catalog = config.catalogs.get(engine.catalog)
        if isinstance(engine, SparkEngine) and engine.enabled and isinstance(catalog, RestCatalog):
            yield Finding(
                path=("catalogs", engine.catalog, "type"),
                message="the demo lake is built in a catalog of type sqlite; give a lakehouse that "
                "exists another profile",
                allowed="sqlite",
            )


def _duckdb_has_files(config: Config) -> Iterator[Finding]:
    for name, engine in config.engines.items():
        catalog = config.catalogs.get(engine.catalog)
        if isinstance(engine, DuckDBEngine) and engine.enabled and catalog and not catalog.folder:
            yield Finding(
                path=("engines", name, "catalog"),
                message="DuckDB reads tables from files of this machine only: set "
                f"catalogs.{engine.catalog}.warehouse_folder to the folder that holds them, or "
                "disable the engine",
            )


def _one_of_a_kind_is_started(config: Config) -> Iterator[Finding]:
    """`lakehelm up` starts one Spark and one Trino; a second would be waited for in vain."""
    first: dict[str, str] = {}
    for name, engine in config.engines.items():
        if not isinstance(engine, SparkEngine | TrinoEngine):
            continue
        if not (engine.enabled and engine.managed):
            continue
        other = first.setdefault(engine.type, name)
        if other != name:
            yield Finding(
                path=("engines", name, "managed"),
                message=f"`lakehelm up` starts one engine of type {engine.type}, and that is "
                f"{other}; start this one yourself and set managed: false",
                allowed="false",
            )


def _sources_are_known(config: Config) -> Iterator[Finding]:
    known = (*config.engines, *EXTRA_SOURCES)
    for name in config.collect:
        if name not in known:
            yield Finding(
                path=("collect", name),
                message="no such source: a source bears the name of an engine, or is iceberg",
                allowed=", ".join(known),
                nearest=nearest(name, known),
            )


def _ports_are_unique(config: Config) -> Iterator[Finding]:
    seen: list[_Listener] = []
    for listener in _listeners(config):
        for other in seen:
            if _collide(listener, other):
                yield Finding(
                    path=listener.path,
                    message=f"port {listener.port} is used by "
                    f"{'.'.join(str(p) for p in other.path)}{other.note} too; give each its own",
                )
                break
        seen.append(listener)


def _store_stays_on_this_machine(config: Config) -> Iterator[Finding]:
    if config.store.host not in _LOOPBACK:
        yield Finding(
            path=("store", "host"),
            message="the store is served to this machine only; for others, put a proxy with TLS "
            "in front of it",
            allowed=", ".join(_LOOPBACK),
        )
    if config.store.port == _LAST_PORT:
        yield Finding(
            path=("store", "port"), message="readers need the port after it; choose a lower one"
        )


def _routing_fits(config: Config) -> Iterator[Finding]:
    for finding in check_routing(config.routing, config.engines):
        yield replace(finding, path=("routing", *finding.path))


def _listeners(config: Config) -> Iterator[_Listener]:
    store = config.store
    yield _Listener(("store", "port"), store.host, store.port, is_ours=True)
    yield _Listener(("store", "port"), store.host, store.port + 1, is_ours=True, note=" (readers)")
    for name, engine in config.engines.items():
        if not isinstance(engine, SparkEngine | TrinoEngine) or not engine.enabled:
            continue  # nothing of it listens on this machine
        at = ("engines", name)
        yield _Listener((*at, "port"), engine.host, engine.port, engine.managed)
        if isinstance(engine, SparkEngine):
            yield _Listener((*at, "ui_port"), engine.host, engine.ui_port, engine.managed)
    gateway, ui = config.gateway, config.ui
    yield _Listener(("gateway", "admin_port"), gateway.host, gateway.admin_port, is_ours=True)
    if gateway.sql.enabled:
        yield _Listener(
            ("gateway", "sql", "port"), gateway.sql.host, gateway.sql.port, is_ours=True
        )
        if gateway.sql.postgres_port is not None:
            yield _Listener(
                ("gateway", "sql", "postgres_port"),
                gateway.sql.host,
                gateway.sql.postgres_port,
                is_ours=True,
            )
        for name, endpoint in config.routing.endpoints.items():
            if endpoint.port is not None:
                path = ("routing", "endpoints", name, "port")
                yield _Listener(path, gateway.sql.host, endpoint.port, is_ours=True)
    yield _Listener(("ui", "port"), ui.host, ui.port, is_ours=True)


def _collide(one: _Listener, other: _Listener) -> bool:
    # Two entries may well speak to one remote engine; a port that we open must be free of others.
    if one.port != other.port or not (one.is_ours or other.is_ours):
        return False
    return one.host == other.host or (_is_here(one.host) and _is_here(other.host))


def _is_here(host: str) -> bool:
    return host in _LOOPBACK or host in _ANYWHERE


def _alerts_have_channels(config: Config) -> Iterator[Finding]:
    """What nobody hears of is found when it is too late."""
    wanted = {
        ("finops", "anomalies", "notify"): config.finops.anomalies.notify,
        ("maintenance", "notify"): config.maintenance.notify,
    } | {
        ("finops", "budgets", name, "notify"): budget.notify
        for name, budget in config.finops.budgets.items()
    }
    for path, names in wanted.items():
        for number, name in enumerate(names):
            if name not in config.finops.channels:
                yield Finding(
                    path=(*path, number),
                    message="no such channel",
                    allowed=", ".join(config.finops.channels) or "none: `finops.channels` is empty",
                    nearest=nearest(name, config.finops.channels),
                )


def _budgets_are_of_known_engines(config: Config) -> Iterator[Finding]:
    for name, budget in config.finops.budgets.items():
        if budget.engine is not None and budget.engine not in config.engines:
            yield Finding(
                path=("finops", "budgets", name, "engine"),
                message="no such engine",
                allowed=", ".join(config.engines) or "none: `engines` is empty",
                nearest=nearest(budget.engine, config.engines),
            )


_CHECKS: tuple[Callable[[Config], Iterator[Finding]], ...] = (
    _engines_use_known_catalogs,
    _the_demo_lake_is_embedded,
    _duckdb_has_files,
    _one_of_a_kind_is_started,
    _sources_are_known,
    _store_stays_on_this_machine,
    _ports_are_unique,
    _alerts_have_channels,
    _budgets_are_of_known_engines,
    check_prices,
    _routing_fits,
)
