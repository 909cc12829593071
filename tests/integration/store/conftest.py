"""A store served by a process of its own."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.store.client import StoreClient
from tests.factories import free_port_pair
from tests.integration.store.owner_process import READER, WRITER, store_config

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from lakehouse_core.config.models import StoreConfig


class OwnerProcess:
    """Starts, kills and restarts the process that owns one store."""

    def __init__(self, folder: Path) -> None:
        self.config: StoreConfig = store_config(folder, free_port_pair())
        self.folder = folder
        self.log = folder / "owner.log"
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it and wait until it serves."""
        with self.log.open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.integration.store.owner_process",
                 str(self.folder), str(self.config.port)],
                stdout=subprocess.PIPE, stderr=log, text=True,
            )  # fmt: skip
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        while line and line != "ready\n":
            with self.log.open("a") as log:
                log.write(line)
            line = self._process.stdout.readline()
        if not line:
            self._close()
            pytest.fail(f"the owner did not start: {self.log.read_text()}")

    def kill(self) -> None:
        """SIGKILL, as at any moment."""
        if self._process is not None:
            self._process.kill()
            self._close()

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        assert self._process is not None
        self._process.terminate()
        return self._close()

    @property
    def pid(self) -> int:
        """Its process number."""
        assert self._process is not None
        return self._process.pid

    def client(self, role: str) -> StoreClient:
        """A connection of this process to it."""
        if role == "writer":
            return StoreClient(self.config, token=WRITER, role="writer")
        return StoreClient(self.config, token=READER, role="reader")

    def _close(self) -> int:
        assert self._process is not None
        assert self._process.stdout is not None
        code = self._process.wait()
        self._process.stdout.close()
        self._process = None
        return code


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[OwnerProcess]:
    """An owner that is not started yet; killed at the end."""
    process = OwnerProcess(tmp_path)
    yield process
    process.kill()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnerProcess]:
    """One owner for all tests of a module that do no harm to it."""
    process = OwnerProcess(tmp_path_factory.mktemp("served"))
    process.start()
    yield process
    process.kill()


@pytest.fixture
def writer(served: OwnerProcess) -> Iterator[StoreClient]:
    """A writing client of the module's owner."""
    with served.client("writer") as client:
        yield client


@pytest.fixture
def reader(served: OwnerProcess) -> Iterator[StoreClient]:
    """A reading client of the module's owner."""
    with served.client("reader") as client:
        yield client


def wait_until(condition: Callable[[], bool], seconds: float = 30) -> None:
    """Wait for a condition, not for a time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not become true in time"
        time.sleep(0.02)
