"""The command line: typer commands, each a thin call of a service; `--json` everywhere."""

from lakehouse_core.cli.main import main

__all__ = ["main"]
