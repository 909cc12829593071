"""`python -m lakehouse_core.gateway --config FILE`: serve its HTTP until told to stop."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn

from lakehouse_core.bootstrap import open_intakes, open_sql_port, open_store
from lakehouse_core.config import load_config
from lakehouse_core.config.secrets import resolve_secret
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.errors import LakehouseError
from lakehouse_core.gateway.app import Admin, create_app
from lakehouse_core.gateway.costs import CostCounters
from lakehouse_core.gateway.desk import Desk
from lakehouse_core.gateway.facts import FactsCache, read_facts
from lakehouse_core.gateway.ingest import Ingest
from lakehouse_core.gateway.keeping import NewsOnly, SpoolKeeper
from lakehouse_core.store.spool import Spool
from lakehouse_core.views.groups import rules_of

if TYPE_CHECKING:
    from lakehouse_core.config.models import Config
    from lakehouse_core.store.port import TelemetryStore

# Tables whose rows come along with every event of a template.
BY_TEMPLATE = ("query_template", "template_table", "column_usage", "column_literal")


def main(arguments: list[str] | None = None) -> int:
    """Serve; returns 2 when the configuration or a secret is wrong."""
    parser = argparse.ArgumentParser(prog="lakehouse_core.gateway", description=__doc__)
    parser.add_argument("--config", type=Path, help="configuration file")
    chosen = parser.parse_args(arguments)
    try:
        config = load_config(chosen.config).config
        store = open_store(config, "reader")
        ingest = open_ingest(config, store)
        sql = None
        if config.gateway.sql.enabled:
            sql = open_sql_port(config, store, lambda: load_config(chosen.config).config)
    except LakehouseError as error:
        sys.stderr.write(f"gateway: {error}\n")
        return 2
    admin = Admin(
        facts=FactsCache(lambda: read_facts(store, utc_now), utc_now),
        engines=tuple(name for name, engine in config.engines.items() if engine.enabled),
        probe_every=config.agents.probe_every,
        ingest=ingest,
        sql=sql,
        costs=CostCounters(store, rules_of(config), utc_now),
    )
    try:
        uvicorn.run(
            create_app(admin),
            host=config.gateway.host,
            port=config.gateway.admin_port,
            loop="uvloop",
            log_level=config.logging.level,
            access_log=False,
            timeout_graceful_shutdown=5,
        )
    finally:
        store.close()
    return 0


def open_ingest(config: Config, store: TelemetryStore) -> Ingest:
    """What takes the events that engines push.

    Raises:
        ConfigError: the token is missing.
    """
    intakes = open_intakes(config, store)
    memory = config.gateway.ingest_memory
    keep = SpoolKeeper(Spool(config.store.spool))
    return Ingest(
        token=resolve_secret(config.gateway.ingest_token),
        trino=Desk(intakes.trino, NewsOnly(keep, BY_TEMPLATE), memory),
        reports=Desk(intakes.reports, keep, memory),
        most_bytes=config.gateway.ingest_max_body,
    )


if __name__ == "__main__":
    sys.exit(main())
