"""A process that upserts events as fast as it can and notes each batch once it is acknowledged.

python -m tests.integration.store.writing_process FOLDER PORT NAME BATCHES ROWS

It ends after so many batches, or when `FOLDER/enough` appears. Batch n has the query ids `n-0`,
`n-1`, …; line n of `FOLDER/NAME.acknowledged` is written, and made durable, after the upsert of
batch n has returned.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse_core.domain.query import EngineId
from lakehouse_core.store.client import StoreClient
from lakehouse_core.store.rows import to_arrow
from tests.factories import query_event
from tests.integration.store.owner_process import WRITER, store_config

if TYPE_CHECKING:
    import pyarrow as pa


def batch(name: str, number: int, rows: int) -> pa.Table:
    """The events of one batch: the same for the same arguments."""
    event = query_event(engine_id=EngineId(name), query_id="", sql_text="SELECT 1 -- " * 20)
    return to_arrow(
        "query_event", [replace(event, query_id=f"{number}-{row}") for row in range(rows)]
    )


def main() -> None:
    """Write all batches."""
    folder, name = Path(sys.argv[1]), sys.argv[3]
    port, batches, rows = int(sys.argv[2]), int(sys.argv[4]), int(sys.argv[5])
    client = StoreClient(store_config(folder, port), token=WRITER, role="writer")
    with client, (folder / f"{name}.acknowledged").open("a") as notes:
        for number in range(batches):
            if (folder / "enough").exists():
                break
            client.upsert("query_event", batch(name, number, rows))
            notes.write(f"{number}\n")
            notes.flush()
            os.fsync(notes.fileno())
            # The spool takes batches faster than an owner that starts: keep the pile small.
            time.sleep(0.01)


if __name__ == "__main__":
    main()
