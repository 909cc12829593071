"""`python -m lakehouse_core.gateway --config FILE`: serve the admin HTTP until told to stop."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import uvicorn

from lakehouse_core.bootstrap import open_store
from lakehouse_core.config import load_config
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.errors import LakehouseError
from lakehouse_core.gateway.app import Admin, create_app
from lakehouse_core.gateway.facts import FactsCache, read_facts


def main(arguments: list[str] | None = None) -> int:
    """Serve; returns 2 when the configuration or a secret is wrong."""
    parser = argparse.ArgumentParser(prog="lakehouse_core.gateway", description=__doc__)
    parser.add_argument("--config", type=Path, help="configuration file")
    chosen = parser.parse_args(arguments)
    try:
        config = load_config(chosen.config).config
        store = open_store(config, "reader")
    except LakehouseError as error:
        sys.stderr.write(f"gateway: {error}\n")
        return 2
    admin = Admin(
        facts=FactsCache(lambda: read_facts(store, utc_now), utc_now),
        engines=tuple(name for name, engine in config.engines.items() if engine.enabled),
        probe_every=config.agents.probe_every,
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


if __name__ == "__main__":
    sys.exit(main())
