"""Iceberg's own REST catalog server on loopback, on an SQLite file and a local warehouse."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakehouse_core.config.catalogs import RestCatalog
from lakehouse_core.runtime.command import Command
from lakehouse_core.runtime.processes import ProcessSpec
from lakehouse_core.runtime.readiness import http_answers
from tests.factories import free_port
from tools.rest_catalog import MAIN_CLASS

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.runtime.java import Java
    from tests.fixtures_runtime import StartProcess

HOST = "127.0.0.1"


@dataclass(frozen=True)
class RestServer:
    """A server; it ends with the test session."""

    folder: Path
    port: int = field(default_factory=free_port)

    @property
    def uri(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def warehouse(self) -> Path:
        return self.folder / "warehouse"

    @property
    def config(self) -> RestCatalog:
        """How we are told of it."""
        return RestCatalog(type="rest", uri=self.uri, warehouse_folder=self.warehouse)

    def start(self, java: Java, jars: tuple[Path, ...], start_process: StartProcess) -> None:
        self.warehouse.mkdir(parents=True)
        command = Command(
            argv=(
                str(java.executable), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                "-Djava.net.preferIPv4Stack=true",
                "-cp", ":".join(map(str, jars)), MAIN_CLASS,
            ),
            env={
                "CATALOG_URI": f"jdbc:sqlite:{self.folder}/catalog.db",
                "CATALOG_WAREHOUSE": f"file://{self.warehouse}",
                "CATALOG_CATALOG_NAME": "backend",
                "CATALOG_REST_PORT": str(self.port),
            },
        )  # fmt: skip
        ready = http_answers(HOST, self.port, "/v1/config")
        spec = ProcessSpec(name="rest-catalog", command=command, ready=ready, ready_seconds=120.0)
        start_process(spec, self.folder / "logs")

    def forget_all(self) -> None:
        """Empty the catalog behind the server's back; it keeps nothing itself."""
        with sqlite3.connect(self.folder / "catalog.db", timeout=30) as connection:
            connection.execute("DELETE FROM iceberg_tables")
            connection.execute("DELETE FROM iceberg_namespace_properties")
        connection.close()
