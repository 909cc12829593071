"""What every page needs: the configuration, the store, the filters, and views read through a cache.

A view's result is kept for a few seconds under its name and arguments, so that a click on a filter
that somebody used just now answers from memory.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st

from lakehouse_core.bootstrap import open_store
from lakehouse_core.config import Loaded, load_config
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.views.filters import Filters
from lakehouse_core.views.freshness import Job, jobs
from lakehouse_core.views.gateway import GatewayAdmin
from lakehouse_core.views.groups import rules_of
from lakehouse_core.views.theme import engine_colours
from lakehouse_core.views.window import DEFAULT_WINDOW

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakehouse_core.config import Config
    from lakehouse_core.finops.groups import GroupRules
    from lakehouse_core.store.client import StoreClient

T = TypeVar("T")

WINDOWS = ("1h", "6h", "24h", "7d", "30d", "today", "yesterday", "week", "lastweek")
TTL_SECONDS = 5


@st.cache_resource(show_spinner=False, max_entries=4)
def _open(loaded_from: str, _loaded: Loaded) -> StoreClient:
    """One connection per configuration file, shared by all visitors."""
    del loaded_from  # the key of the cache
    return open_store(_loaded.config, role="reader")


@st.cache_data(ttl=TTL_SECONDS, max_entries=256, show_spinner=False)
def _read(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], _run: Callable[[], T]) -> T:
    del name, args, kwargs  # the key of the cache
    return _run()


@st.cache_resource(ttl=TTL_SECONDS, show_spinner=False)
def loaded() -> Loaded:
    """The configuration, read anew every few seconds: a mended file is seen without a restart."""
    return load_config()


def config() -> Config:
    """The configuration's values."""
    return loaded().config


def store() -> StoreClient:
    """The store, opened when first needed."""
    present = loaded()
    return _open(str(present.path) + str(present.config.store), present)


def gateway() -> GatewayAdmin:
    """The gateway's admin port."""
    return GatewayAdmin(config().gateway)


def forget_store() -> None:
    """Drop the connection, so that the next read opens a new one."""
    _open.clear()
    _read.clear()


def forget_reads() -> None:
    """Let the next reads see what was just changed."""
    _read.clear()


def read(view: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """The result of a view (`view(store, *args, **kwargs)`), at most a few seconds old."""
    opened = store()
    key = f"{view.__module__}.{view.__qualname__}@{id(opened)}"
    return _read(key, args, kwargs, lambda: view(opened, *args, clock=utc_now, **kwargs))


def read_now(view: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """As `read`, for views that take no clock."""
    opened = store()
    key = f"{view.__module__}.{view.__qualname__}@{id(opened)}"
    return _read(key, args, kwargs, lambda: view(opened, *args, **kwargs))


def read_fresh(view: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """As `read`, never from memory: for parts that show something move."""
    return view(store(), *args, clock=utc_now, **kwargs)


def expected_jobs() -> tuple[Job, ...]:
    """The jobs the configuration schedules."""
    return jobs(config())


def rules() -> GroupRules:
    """The workload rules of the configuration."""
    return rules_of(config())


def colours() -> dict[str, str]:
    """Engine id to its colour."""
    return engine_colours({name: engine.type for name, engine in config().engines.items()})


def bar() -> Filters:
    """Window and engine of the shared filter bar."""
    state = st.session_state
    return Filters(window=state.get("window") or DEFAULT_WINDOW, engine=state.get("engine"))


def bar_with(own: Filters) -> Filters:
    """A page's own filters under the window and engine of the filter bar."""
    shared = bar()
    return replace(own, window=shared.window, engine=shared.engine)
