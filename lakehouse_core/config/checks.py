"""What no single key can tell: references between sections, ports that collide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse_core.config.catalogs import RestCatalog
from lakehouse_core.config.models import DuckDBEngine, SparkEngine, TrinoEngine
from lakehouse_core.config.problems import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakehouse_core.config.models import Config
    from lakehouse_core.config.problems import KeyPath

# Sources that are not engines. A source that reads an engine's history bears the engine's name.
EXTRA_SOURCES = ("iceberg",)
_LAST_PORT = 65_535
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_ANYWHERE = ("0.0.0.0", "::")  # noqa: S104 names to compare with, nothing is bound here


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A problem found by a check, before it is given a place in the file."""

    path: KeyPath
    message: str
    allowed: str | None = None
    nearest: str | None = None


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
    yield _Listener(("ui", "port"), ui.host, ui.port, is_ours=True)


def _collide(one: _Listener, other: _Listener) -> bool:
    # Two entries may well speak to one remote engine; a port that we open must be free of others.
    if one.port != other.port or not (one.is_ours or other.is_ours):
        return False
    return one.host == other.host or (_is_here(one.host) and _is_here(other.host))


def _is_here(host: str) -> bool:
    return host in _LOOPBACK or host in _ANYWHERE


_CHECKS: tuple[Callable[[Config], Iterator[Finding]], ...] = (
    _engines_use_known_catalogs,
    _the_demo_lake_is_embedded,
    _duckdb_has_files,
    _sources_are_known,
    _store_stays_on_this_machine,
    _ports_are_unique,
)
