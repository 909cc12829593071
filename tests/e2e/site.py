"""The pages and a filled store in processes of their own, without engines."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tests.e2e.served import gateway_ports
from tests.factories import free_port, free_port_pair

if TYPE_CHECKING:
    from types import TracebackType

ROOT = Path(__file__).parents[2]
START_SECONDS = 90.0


class Site:
    """`streamlit run app.py` beside a process that owns the store."""

    def __init__(self, home: Path) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._home = home
        self._environ = os.environ | {
            "LAKEHELM_CONFIG": str(ROOT / "config" / "lakehelm.yaml"),
            "LAKEHELM_HOME": str(home / "var"),
            "LAKEHELM__STORE__PORT": str(free_port_pair()),
            **gateway_ports(),
            "PYTHONUNBUFFERED": "1",
        }
        self._owner: subprocess.Popen[str] | None = None
        self._pages: subprocess.Popen[str] | None = None

    def start_owner(self) -> None:
        """Fill and serve the store; returns when it answers."""
        log = (self._home / "owner.log").open("a")
        self._owner = subprocess.Popen(
            [sys.executable, "-m", "tests.e2e.owner"],
            cwd=ROOT, env=self._environ, text=True, stdout=subprocess.PIPE, stderr=log,
        )  # fmt: skip
        log.close()
        assert self._owner.stdout is not None
        assert self._owner.stdout.readline() == "ready\n", (self._home / "owner.log").read_text()

    def stop_owner(self) -> None:
        """End the owner as `lakehelm` would."""
        _end(self._owner)
        self._owner = None

    def start_pages(self) -> None:
        """Serve the pages; returns when the server is up, no page has been opened yet."""
        log = (self._home / "pages.log").open("a")
        self._pages = subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", "app.py",
             "--server.port", str(self.port), "--server.address", "127.0.0.1"],
            cwd=ROOT, env=self._environ, text=True, stdout=log, stderr=log,
        )  # fmt: skip
        log.close()
        deadline = time.monotonic() + START_SECONDS
        while not self._is_up():
            assert time.monotonic() < deadline, (self._home / "pages.log").read_text()
            assert self._pages.poll() is None, (self._home / "pages.log").read_text()
            time.sleep(0.1)

    def _is_up(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=2) as answer:  # noqa: S310 our own server
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _end(self._pages)
        _end(self._owner)


def _end(process: subprocess.Popen[str] | None) -> None:
    if process is None:
        return
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(20)
    if process.stdout is not None:
        process.stdout.close()
