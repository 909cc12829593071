"""The whole product, started as a user starts it, in a folder and on ports of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import psutil

from tests.factories import free_port, free_port_pair

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

ROOT = Path(__file__).parents[2]
LAKEHELM = Path(sys.executable).with_name("lakehelm")
# Everything includes a Spark build of the lake on two shared cores.
UP_SECONDS = 540.0
DOWN_SECONDS = 60.0
COLLECTED_SECONDS = 180.0


def wait_for(what: str, look: Callable[[], T | None], seconds: float) -> T:
    """Look again and again until there is an answer; say what was waited for when there is none."""
    deadline = time.monotonic() + seconds
    while True:
        answer = look()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:.0f} s in vain for {what}")
        time.sleep(0.25)


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended."""

    code: int
    stdout: str
    stderr: str


class Stack:
    """`lakehelm up` and the commands a user runs beside it."""

    def __init__(self, home: Path, *, scale: float = 0.01) -> None:
        self.home = home
        self._scale = scale
        self._environ = os.environ | {
            "LAKEHELM_HOME": str(home),
            "LAKEHELM_CONFIG": str(ROOT / "config" / "lakehelm.yaml"),
            "LAKEHELM__STORE__PORT": str(free_port_pair()),
            "LAKEHELM__ENGINES__SPARK__PORT": str(free_port()),
            "LAKEHELM__ENGINES__SPARK__UI_PORT": str(free_port()),
            "LAKEHELM__ENGINES__SPARK__DRIVER_MEMORY": "1500MiB",
            "LAKEHELM__ENGINES__TRINO__PORT": str(free_port()),
            "LAKEHELM__GATEWAY__ADMIN_PORT": str(free_port()),
            "LAKEHELM__GATEWAY__SQL__PORT": str(free_port()),
            "LAKEHELM__GATEWAY__SQL__POSTGRES_PORT": str(free_port()),
            "LAKEHELM__UI__PORT": str(free_port()),
        }
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        """What `lakehelm up` printed."""
        return self.home / "up.log"

    @property
    def ui_url(self) -> str:
        """Where the pages are."""
        return f"http://127.0.0.1:{self._environ['LAKEHELM__UI__PORT']}"

    @property
    def admin_url(self) -> str:
        """Where the gateway's admin HTTP is."""
        return f"http://127.0.0.1:{self._environ['LAKEHELM__GATEWAY__ADMIN_PORT']}"

    def up(self) -> None:
        """Start it and wait until everything is ready."""
        self.home.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [LAKEHELM, "up", "--scale", str(self._scale)],
                env=self._environ,
                cwd=ROOT,
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        process = self._process

        def is_up() -> bool:
            if process.poll() is not None:
                raise AssertionError(f"lakehelm up ended with {process.returncode}:\n{self.tail()}")
            return self.status().get("phase") == "up"

        try:
            wait_for("lakehelm up", is_up, UP_SECONDS)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.tail()}") from error

    def down(self) -> list[psutil.Process]:
        """Stop it with SIGTERM and return what was left running, which must be nothing."""
        process = self._process
        if process is None or process.poll() is not None:
            return []
        family = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGTERM)
        process.wait(DOWN_SECONDS)
        _, left = psutil.wait_procs(family, timeout=5)
        return left

    def status(self) -> dict[str, Any]:
        """The supervisor's status file."""
        try:
            loaded: dict[str, Any] = json.loads((self.home / "run" / "status.json").read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return {}
        return loaded

    def process(self, name: str) -> dict[str, Any]:
        """One process of the status file."""
        found: dict[str, Any] = next(p for p in self.status()["processes"] if p["name"] == name)
        return found

    def run(self, *args: str, seconds: float = 120) -> Finished:
        """Run a lakehelm command beside it."""
        done = subprocess.run(
            [LAKEHELM, *args],
            env=self._environ,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        return Finished(done.returncode, done.stdout, done.stderr)

    def json(self, *args: str) -> Any:
        """Run a command with `--json`, which must end with 0, and decode what it prints."""
        done = self.run(*args, "--json")
        if done.code != 0:
            raise AssertionError(f"{args} ended with {done.code}: {done.stderr}\n{done.stdout}")
        return json.loads(done.stdout)

    def collected(self, *args: str) -> Any:
        """Like `json`, but waits until the agents have collected what the command shows."""

        def look() -> Any:
            done = self.run(*args, "--json")
            return json.loads(done.stdout) if done.code == 0 else None

        return wait_for(f"an answer to {' '.join(args)}", look, COLLECTED_SECONDS)

    def tail(self) -> str:
        """The last lines of every log, for a failure's message."""
        logs = [self.log, *sorted((self.home / "logs").glob("*.log"))]
        return "\n".join(
            f"--- {log.name}\n" + "\n".join(log.read_text(errors="replace").splitlines()[-15:])
            for log in logs
            if log.exists()
        )
