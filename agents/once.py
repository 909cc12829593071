"""Collecting once, from the command line: through the running owner, or as owner for the moment."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from agents.collect import CollectReport, run_once
from agents.runs import record_run
from collectors.registry import build_source, check_source, collect_settings, source_names
from lakehouse_core.bootstrap import open_store
from lakehouse_core.domain.clock import Clock, utc_now
from lakehouse_core.domain.errors import StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agents.runs import Result
    from lakehouse_core.config.models import Config
    from lakehouse_core.store.client import StoreClient
    from lakehouse_core.store.port import TelemetryStore, TogetherStore


@contextmanager
def writing_store(config: Config) -> Iterator[TogetherStore]:
    """The store, to write to: the owner's when it runs, else opened here and served to nobody.

    Raises:
        StoreLockedError: somebody holds the file but does not answer, e.g. is just starting.
    """
    from lakehouse_core.store.owner import OwnerStore  # noqa: PLC0415 not needed beside an owner

    client = _client(config)
    if client is None:
        with OwnerStore.open(config.store) as owner:
            yield owner
        return
    try:
        yield client
    finally:
        client.close()


def _client(config: Config) -> StoreClient | None:
    """A connection to the owner; None when it does not run."""
    try:
        client = open_store(config, role="writer")
    except StoreUnavailableError:
        return None
    try:
        client.ping()
    except StoreUnavailableError:
        client.close()
        return None
    return client


def collect_all(
    config: Config, names: Sequence[str] = (), clock: Clock = utc_now
) -> list[CollectReport]:
    """Collect the named sources once, or all that are switched on; one that fails stops no other.

    Raises:
        ConfigError: a name is not a source.
        StoreError: the store cannot be opened.
    """
    for name in names:
        check_source(name, config)
    with writing_store(config) as store:
        return [_collect(config, store, name, clock) for name in names or source_names(config)]


def _collect(config: Config, store: TelemetryStore, name: str, clock: Clock) -> CollectReport:
    reports: list[CollectReport] = []

    def work() -> Result:
        source = build_source(name, config, store, clock)
        try:
            timeout = collect_settings(config, name).timeout
            reports.append(run_once(source, store, clock, timeout=timeout))
        finally:
            close = getattr(source, "close", None)  # files have nothing to release
            if close is not None:
                close()
        return reports[0].result

    run = record_run(store, clock, f"collect:{name}", work)
    if reports:
        return reports[0]
    return CollectReport(  # a secret is missing, or a bug of ours: recorded, and told here
        source=name,
        rows=0,
        dead_letters=0,
        newest_event_age_seconds=None,
        watermark=None,
        error=run.error,
        seconds=0.0,
    )
