"""A process that owns a filled store, as the agents process would: `python -m tests.e2e.owner`.

Reads the configuration like every process of ours; keeps the rows fresh until it is told to stop,
answers requests for runs with a run that tells its progress, decisions about recommendations and
switches of engines. A gateway with DuckDB on a small lake takes statements.
"""

from __future__ import annotations

import itertools
import signal
import sys
import threading
from typing import TYPE_CHECKING

from agents import recommend
from agents.decide import Decisions
from agents.requests import Requests
from agents.switch import Switches
from lakehouse_core.config import load_config, resolve_secret
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.store.owner import OwnerStore, Tokens
from tests.e2e.served import gateway, make_lake
from tests.ui import scenario

if TYPE_CHECKING:
    from lakehouse_core.config import Config
    from lakehouse_core.domain.agent import AgentRun

FRESH_SECONDS = 3


def open_owner(config: Config) -> OwnerStore:
    """The store of a configuration, served with the tokens it names."""
    tokens = Tokens(
        writer=resolve_secret(config.store.writer_token),
        reader=resolve_secret(config.store.reader_token),
    )
    return OwnerStore.open(config.store, tokens=tokens)


def write_tokens(config: Config) -> None:
    """Make the token files that `lakehelm up` would make."""
    folder = config.home / "secrets"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("store-writer", "store-reader", "ingest"):
        file = folder / name
        file.write_text(f"{name}-of-a-test")
        file.chmod(0o600)


def main() -> None:
    """Own the store until a signal comes."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    config = load_config().config
    write_tokens(config)
    make_lake(config)
    with open_owner(config) as store:
        scenario.fill(store, utc_now())
        recommend.run_once(store, config, utc_now)
        scenario.cost(store, config, utc_now())
        decisions = Decisions(store, config.maintenance, utc_now)
        switches = Switches(store, utc_now)
        with gateway(config, store):
            sys.stdout.write("ready\n")
            sys.stdout.flush()
            requests = Requests(store, utc_now, scenario.JOBS)
            going: list[AgentRun] = []
            for beat in itertools.count():
                if stop.wait(1):
                    return
                if beat % FRESH_SECONDS == 0:
                    scenario.refresh(store, utc_now(), without={run.agent for run in going})
                decisions.take_up()
                switches.take_up()
                going = scenario.go_on(store, utc_now(), going, requests.when_ended)
                taken: list[str] = []
                requests.take_up({run.agent for run in going}, taken.append)
                going += scenario.begin(store, utc_now(), taken)


if __name__ == "__main__":
    main()
