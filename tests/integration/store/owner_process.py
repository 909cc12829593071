"""A process that owns a store and serves it: what `python -m agents` is to the store.

python -m tests.integration.store.owner_process FOLDER PORT
"""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path

from lakehouse_core.config.models import StoreConfig
from lakehouse_core.store.owner import OwnerStore, Tokens

WRITER = "writer-canary-6f1d0c"
READER = "reader-canary-93ab4e"


def store_config(folder: Path, port: int) -> StoreConfig:
    """The store below a folder."""
    return StoreConfig(
        path=folder / "telemetry.duckdb",
        spool=folder / "spool",
        backups=folder / "backups",
        port=port,
    )


def main() -> None:
    """Serve until SIGTERM."""
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    config = store_config(Path(sys.argv[1]), int(sys.argv[2]))
    with OwnerStore.open(config, tokens=Tokens(WRITER, READER)):
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        ended.wait()


if __name__ == "__main__":
    main()
