"""The app on a served store; AppTest finds it the way the pages do, by the environment."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from agents import recommend
from agents.decide import Decisions
from agents.propose import Proposals
from agents.switch import Switches
from agents.trials import TrialDecisions
from lakehouse_core.config import load_config
from lakehouse_core.domain.clock import utc_now
from pages.parts.menu import SECTIONS
from tests.e2e.owner import open_owner, write_tokens
from tests.e2e.served import gateway_ports
from tests.factories import free_port_pair
from tests.ui import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakehouse_core.store.owner import OwnerStore


TITLES = {name: title for entries in SECTIONS.values() for name, title, _ in entries}
PAGES = tuple(TITLES)


@contextmanager
def answering(*desks: Decisions | Proposals | Switches | TrialDecisions) -> Iterator[None]:
    """Answer wishes about actions and engines, as the agents process does once a second."""
    stop = threading.Event()

    def beat() -> None:
        while not stop.wait(0.1):
            for desk in desks:
                desk.take_up()

    thread = threading.Thread(target=beat, name="decisions")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@dataclass(frozen=True)
class Place:
    """A home folder and the environment that leads the pages to it."""

    environ: dict[str, str]

    @classmethod
    def below(cls, folder: Path, repository: Path) -> Place:
        return cls(
            {
                "LAKEHELM_CONFIG": str(repository / "config" / "lakehelm.yaml"),
                "LAKEHELM_HOME": str(folder),
                "LAKEHELM__STORE__PORT": str(free_port_pair()),
                **gateway_ports(),
            }
        )

    @contextmanager
    def served(self, *, filled: bool) -> Iterator[OwnerStore]:
        """Own the store of this place, as the agents process does."""
        config = load_config(environ={**os.environ, **self.environ}).config
        write_tokens(config)
        with open_owner(config) as owner:
            if filled:
                scenario.fill(owner, utc_now())
                recommend.run_once(owner, config, utc_now)
                scenario.cost(owner, config, utc_now())
            desks = (
                Decisions(owner, config.maintenance, utc_now),
                Proposals(owner, config, utc_now),
                TrialDecisions(owner, utc_now),
                Switches(owner, utc_now),
            )
            with answering(*desks):
                yield owner


@pytest.fixture(scope="package")
def filled_place(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Iterator[Place]:
    """A store with some busy days in it."""
    place = Place.below(tmp_path_factory.mktemp("filled"), repository)
    with place.served(filled=True):
        yield place


@pytest.fixture(scope="package")
def empty_place(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Iterator[Place]:
    """A store that nothing was collected into yet."""
    place = Place.below(tmp_path_factory.mktemp("empty"), repository)
    with place.served(filled=False):
        yield place


class Visitor:
    """Opens the app at a place."""

    def __init__(self, repository: Path, patch: pytest.MonkeyPatch) -> None:
        self._repository = repository
        self._patch = patch

    def at(self, place: Place, page: str = "overview", **address: str) -> AppTest:
        """The page after its first run."""
        for name, value in place.environ.items():
            self._patch.setenv(name, value)
        app = AppTest.from_file(self._repository / "app.py", default_timeout=60)
        for name, value in address.items():
            app.query_params[name] = value
        app.run()  # the navigation must be known before a page can be switched to
        return app if page == "overview" else app.switch_page(f"pages/{page}.py").run()


@pytest.fixture
def visitor(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Visitor]:
    """A visitor whose pages remember nothing of other tests."""
    st.cache_data.clear()
    st.cache_resource.clear()
    # Streamlit makes each page the main module, and a process spawned later would run it.
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    yield Visitor(repository, monkeypatch)
    st.cache_data.clear()
    st.cache_resource.clear()


def words(app: AppTest) -> str:
    """Everything a visitor can read outside of tables and charts."""
    kinds = (
        "title",
        "subheader",
        "markdown",
        "caption",
        "text",
        "code",
        "info",
        "warning",
        "error",
    )
    found = [element.value for kind in kinds for element in getattr(app, kind)]
    found += [part for card in app.metric for part in (card.label, card.value, card.delta)]
    return "\n".join(str(part) for part in found)
