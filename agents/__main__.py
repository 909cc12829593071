"""`python -m agents --config F`: the agents process."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import structlog

from agents.logs import configure_logging
from agents.process import run
from lakehouse_core.config import load_config
from lakehouse_core.domain.errors import ConfigError, LakehouseError


def main(arguments: list[str] | None = None) -> int:
    """Read the configuration, run, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m agents", description=__doc__)
    parser.add_argument("--config", type=Path, default=None, help="the configuration file")
    given = parser.parse_args(arguments)
    try:
        config = load_config(given.config).config
        configure_logging(config.logging)
        return run(config)
    except LakehouseError as error:
        structlog.get_logger(__name__).error("agents.failed", error=str(error))
        sys.stderr.write(f"agents: {error}\n")
        return 2 if isinstance(error, ConfigError) else 1


if __name__ == "__main__":
    sys.exit(main())
