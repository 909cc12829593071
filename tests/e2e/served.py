"""A gateway before a small lake, in a thread of whoever owns the store: no process, no JVM."""

from __future__ import annotations

import asyncio
import threading
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
import uvicorn

from lakehouse_core.bootstrap import _understand
from lakehouse_core.catalog import open_catalog
from lakehouse_core.config import load_config
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.gateway.app import Admin, create_app
from lakehouse_core.gateway.assemble import assemble
from lakehouse_core.gateway.facts import FactsCache, read_facts
from tests.factories import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lakehouse_core.config import Config
    from lakehouse_core.store.owner import OwnerStore

ROWS = 5_000
START_SECONDS = 90.0


def gateway_ports() -> dict[str, str]:
    """Ports of its own for a gateway, as the environment says them."""
    return {
        "LAKEHELM__GATEWAY__ADMIN_PORT": str(free_port()),
        "LAKEHELM__GATEWAY__SQL__PORT": str(free_port()),
        "LAKEHELM__GATEWAY__SQL__POSTGRES_PORT": str(free_port()),
    }


def make_lake(config: Config) -> None:
    """Two tables: `lake.shop.orders` with some thousand rows, `lake.shop.kinds` with three."""
    catalog = config.catalogs["lake"]
    catalog.warehouse.mkdir(parents=True, exist_ok=True)
    kinds = ["web", "shop", "<b>phone</b>"]
    tables = {
        "orders": pa.table(
            {
                "order_id": pa.array(range(ROWS), pa.int64()),
                "kind": pa.array([kinds[i % 3] for i in range(ROWS)]),
                "price": pa.array([i % 97 + 0.25 for i in range(ROWS)], pa.float64()),
            }
        ),
        "kinds": pa.table({"kind": kinds}),
    }
    with closing(open_catalog("lake", catalog)) as lake, closing(lake.iceberg()) as iceberg:
        iceberg.create_namespace_if_not_exists("shop")
        for name, rows in tables.items():
            if not iceberg.table_exists(f"shop.{name}"):
                iceberg.create_table(f"shop.{name}", schema=rows.schema).append(rows)


@contextmanager
def gateway(
    config: Config, store: OwnerStore, environ: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Serve SQL and the admin port until the end; rules are read again as the environment says."""

    def reread() -> Config:
        return (load_config() if environ is None else load_config(environ=environ)).config

    port = assemble(_only_duckdb(config), store, _understand(store), reread)
    admin = Admin(
        facts=FactsCache(lambda: read_facts(store, utc_now), utc_now),
        engines=tuple(config.engines),
        probe_every=config.agents.probe_every,
        sql=port,
    )
    server = uvicorn.Server(
        uvicorn.Config(
            create_app(admin),
            host=config.gateway.host,
            port=config.gateway.admin_port,
            log_level="error",
            access_log=False,
        )
    )
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()), name="gateway")
    thread.start()
    try:
        _wait_until_up(server, thread)
        yield
    finally:
        server.should_exit = True
        thread.join(START_SECONDS)


def _only_duckdb(config: Config) -> Config:
    """The same without the engines that are servers of their own."""
    engines = {
        name: engine.model_copy(update={"enabled": engine.type == "duckdb"})
        for name, engine in config.engines.items()
    }
    return config.model_copy(update={"engines": engines})


def _wait_until_up(server: uvicorn.Server, thread: threading.Thread) -> None:
    pause = threading.Event()
    for _ in range(int(START_SECONDS / 0.05)):
        if server.started:
            return
        assert thread.is_alive(), "the gateway ended before it began"
        pause.wait(0.05)
    raise TimeoutError(f"The gateway did not start within {START_SECONDS:g} s")
