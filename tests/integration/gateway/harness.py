"""A gateway in a thread of its own, with its store and its probes, for clients of this process."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import uvloop
from trino.dbapi import connect

from lakehouse_core.bootstrap import _understand
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.engine import EngineProbe, ObservedState
from lakehouse_core.domain.query import EngineId
from lakehouse_core.gateway.assemble import assemble
from lakehouse_core.store.owner import OwnerStore
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.store.schema import schema_of
from lakehouse_core.store.spool import Spool

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lakehouse_core.config import Config
    from lakehouse_core.gateway.sqlport import SqlPort


class Gateway:
    """Serves until it is closed; `store` is what its records end up in."""

    def __init__(
        self, config: Config, folder: Path, change: Callable[[SqlPort], None] | None = None
    ) -> None:
        sql = config.gateway.sql.model_copy(update={"port": 0, "postgres_port": 0})
        gateway = config.gateway.model_copy(update={"sql": sql})
        # Several gateways of one configuration may be up at once: the system chooses their ports.
        self.config = config = config.model_copy(update={"gateway": gateway})
        self.store = OwnerStore.at(folder / "store")
        self.probe(*config.engines)
        self.port = assemble(config, self.store, _understand(self.store))
        if change is not None:
            change(self.port)
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        self.run(self.port.start())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port.port}"

    def probe(self, *engines: str, observed: ObservedState = ObservedState.HEALTHY) -> None:
        """Put down how engines are."""
        now = utc_now()
        rows = [
            {
                "engine_id": name,
                "engine_type": self.config.engines[name].type,
                "dialect": self.config.engines[name].type,
                "configured": "active",
                "changed_at": now,
            }
            for name in engines
        ]
        schema = schema_of("engine")
        self.store.upsert("engine", pa.Table.from_pylist(rows, schema=schema))
        probes = [
            EngineProbe(engine_id=EngineId(name), probed_at=now, observed=observed)
            for name in engines
        ]
        self.store.upsert("engine_probe", to_arrow("engine_probe", probes))

    def connect(self, **given: Any) -> Any:
        """A connection of the official client."""
        values = {"user": "ana", "catalog": "lake", "schema": "tpch", "source": "tests"}
        return connect(  # type: ignore[no-untyped-call] # the driver has no types
            host="127.0.0.1", port=self.port.port, **{**values, **given}
        )

    def rows(self, sql: str, *params: Any, **given: Any) -> list[Any]:
        """The rows of one statement."""
        connection = self.connect(**given)
        cursor = connection.cursor()
        cursor.execute(sql, list(params) or None)
        return cursor.fetchall()

    def run(self, work: Any, seconds: float = 60.0) -> Any:
        """Run something in the gateway's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds)

    def records(self, table: str) -> list[dict[str, Any]]:
        """The rows the gateway has kept so far, from the spool."""
        spool = Spool(self.config.store.spool)
        return [row for path in spool.pending(table) for row in spool.load(path).to_pylist()]

    def close(self) -> None:
        """Stop, and write what is to be recorded."""
        self.run(self.port.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()
        self.store.close()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
