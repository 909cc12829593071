"""Trino's own Java clients for tests, CLI and JDBC driver: `python -m tools.trino_clients`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.config.environment import read_machine
from lakehouse_core.runtime.artifacts import Artifact, ensure
from lakehouse_core.runtime.ivy import Coordinates
from lakehouse_core.runtime.report import SilentReporter

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.config.environment import Machine
    from lakehouse_core.runtime.report import Reporter

CLI = Artifact(
    Coordinates("io.trino", "trino-cli", "476", "jar", "executable"),
    18_634_579,
    "fe4e9c7fb569cd67673afa1622945f6308e1e59bdb825419352b80887661757b",
)
JDBC = Artifact(
    Coordinates("io.trino", "trino-jdbc", "476", "jar"),
    12_766_107,
    "a3736d21609a5a317d2ce88b3835e312e9b6f41393c1d4b09f2ad6e7aeb3bb90",
)


def ensure_clients(machine: Machine, reporter: Reporter) -> tuple[Path, Path]:
    """Have the CLI and the driver in the cache; returns where they are, in this order.

    Raises:
        DownloadError: something could not be downloaded.
        ChecksumError: a download is not what was pinned.
        NotInstalledError: there is no Java to download with.
    """
    cli, jdbc = ensure(machine, (CLI, JDBC), reporter)
    return cli, jdbc


if __name__ == "__main__":
    for path in ensure_clients(read_machine(), SilentReporter()):
        print(path)
