"""A real Flink session cluster on loopback: a JobManager, a TaskManager, and SQL sent to them."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.request
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lakehouse_core.runtime.command import Command
from lakehouse_core.runtime.processes import ProcessSpec
from lakehouse_core.runtime.readiness import http_answers
from tests.factories import free_port

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.runtime.java import Java
    from lakehouse_core.runtime.supervisor import Supervisor
    from tests.fixtures_runtime import StartProcess
    from tools.flink import Flink

HOST = "127.0.0.1"
SLOTS = 3
SQL_SECONDS = 180
JOB_MANAGER = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
TASK_MANAGER = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
SQL_CLIENT = "org.apache.flink.table.client.SqlClient"
# As Flink's own scripts open them.
_OPENED = tuple(
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in (
        "java.lang", "java.lang.reflect", "java.net", "java.io", "java.nio", "sun.nio.ch",
        "java.text", "java.time", "java.util", "java.util.concurrent",
        "java.util.concurrent.atomic", "java.util.concurrent.locks",
    )
)  # fmt: skip
# What Flink's scripts work out from the size of a process; small, and all of it must be said.
_MEMORY = {
    "taskmanager.cpu.cores": "1",
    "taskmanager.memory.framework.heap.size": "128mb",
    "taskmanager.memory.framework.off-heap.size": "128mb",
    "taskmanager.memory.task.heap.size": "256mb",
    "taskmanager.memory.task.off-heap.size": "0b",
    "taskmanager.memory.managed.size": "64mb",
    "taskmanager.memory.network.min": "64mb",
    "taskmanager.memory.network.max": "64mb",
    "taskmanager.memory.jvm-metaspace.size": "192mb",
    "taskmanager.memory.jvm-overhead.min": "64mb",
    "taskmanager.memory.jvm-overhead.max": "64mb",
}
_LOGGING = """
rootLogger.level = WARN
rootLogger.appenderRef.out.ref = out
appender.out.name = out
appender.out.type = CONSOLE
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %-5p %c{1} %m%n
"""


@dataclass
class FlinkCluster:
    """One cluster; its processes end with the test session, or when they are told to."""

    flink: Flink
    java: Java
    folder: Path
    start_process: StartProcess
    port: int = field(default_factory=free_port)
    _manager: Supervisor | None = None

    def start(self) -> None:
        """Start both processes and wait until the slots are there."""
        rpc = free_port()
        self._conf = self.folder / "conf"
        self._conf.mkdir(parents=True)
        for name in ("tmp", "logs"):
            (self.folder / name).mkdir()
        settings = {
            "jobmanager.rpc.address": HOST,
            "jobmanager.rpc.port": rpc,
            "jobmanager.bind-host": HOST,
            "jobmanager.memory.process.size": "800m",
            "taskmanager.host": HOST,
            "taskmanager.bind-host": HOST,
            "taskmanager.numberOfTaskSlots": SLOTS,
            "rest.address": HOST,
            "rest.bind-address": HOST,
            "rest.port": self.port,
            "parallelism.default": 1,
            "io.tmp.dirs": str(self.folder / "tmp"),
        }
        text = "".join(f"{name}: {json.dumps(value)}\n" for name, value in settings.items())
        (self._conf / "config.yaml").write_text(text)
        (self._conf / "log4j.properties").write_text(_LOGGING)
        self.start_manager()
        memory = [part for name, value in _MEMORY.items() for part in ("-D", f"{name}={value}")]
        worker = self._command("450m", TASK_MANAGER, "--configDir", str(self._conf), *memory)
        spec = ProcessSpec(name="flink-taskmanager", command=worker, ready=self._has_slots)
        self.start_process(spec, self.folder / "logs")

    def start_manager(self) -> None:
        """Start the JobManager, which knows nothing."""
        command = self._command("400m", JOB_MANAGER, "--configDir", str(self._conf))
        ready = http_answers(HOST, self.port, "/overview")
        spec = ProcessSpec(
            name="flink-jobmanager", command=command, ready=ready, ready_seconds=120.0
        )
        self._manager = self.start_process(spec, self.folder / "logs")

    def stop_manager(self) -> None:
        """End the JobManager."""
        assert self._manager is not None
        self._manager.stop()

    def sql(self, *statements: str) -> None:
        """Run statements as the SQL client does; INSERTs go on as jobs."""
        script = self.folder / "script.sql"
        script.write_text("".join(f"{statement};\n" for statement in statements))
        history = ("--history", str(self.folder / "history"))
        command = self._command(
            "400m", SQL_CLIENT, "embedded", "--file", str(script), *history,
            more=self.flink.sql_client,
        )  # fmt: skip
        done = subprocess.run(
            command.argv,
            env={**os.environ, **command.env},
            capture_output=True,
            text=True,
            timeout=SQL_SECONDS,
            check=False,
        )
        assert "[ERROR]" not in done.stdout, done.stdout[-4_000:]
        assert done.returncode == 0, done.stderr[-4_000:]

    def get(self, path: str) -> Any:
        """Ask the JobManager."""
        return self._ask("GET", path)

    def cancel(self, job_id: str) -> None:
        """Cancel a job."""
        self._ask("PATCH", f"/jobs/{job_id}?mode=cancel")

    def jobs(self) -> dict[str, dict[str, Any]]:
        """The jobs by name."""
        return {job["name"]: job for job in self.get("/jobs/overview")["jobs"]}

    def _ask(self, method: str, path: str) -> Any:
        request = urllib.request.Request(f"http://{HOST}:{self.port}{path}", method=method)
        with urllib.request.urlopen(request, timeout=20) as response:  # noqa: S310 loopback
            return json.load(response)

    def _has_slots(self, _pid: int) -> str | None:
        free = self.get("/overview")["slots-available"]
        return None if free == SLOTS else f"{free} of {SLOTS} slots are there"

    def _command(
        self, heap: str, main: str, *arguments: str, more: tuple[Path, ...] = ()
    ) -> Command:
        jars = ":".join(str(jar) for jar in (*self.flink.cluster, *more))
        argv = (
            str(self.java.executable), f"-Xmx{heap}", *_OPENED,
            f"-Djava.io.tmpdir={self.folder / 'tmp'}",
            f"-Dlog4j.configurationFile={self._conf}/log4j.properties", "-Duser.timezone=UTC",
            "-cp", jars, main, *arguments,
        )  # fmt: skip
        return Command(argv=argv, env={"FLINK_CONF_DIR": str(self._conf)})
