"""What all tests share: the fast marker, the network guard, a demo config, an empty store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

from lakehouse_core.config import Config, load_config
from tests.factories import free_port, free_port_pair
from tests.network import NetworkGuard
from tests.stores import new_store

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from lakehouse_core.store.owner import OwnerStore

ROOT = Path(__file__).parents[1]
IS_CI = os.environ.get("CI", "").lower() in ("1", "true")
NEEDS_MORE = {
    "slow",
    "duckdb",
    "spark",
    "trino",
    "flink",
    "rest",
    "snowflake",
    "lake",
    "stack",
    "ui",
    "browser",
}
LAKE_ROOM = "tests/integration/lake/"
FAST_ROOMS = ("tests/unit/", "tests/contract/catalogs/")
# Engines that a machine may rightly lack: the product runs without them and says so.
MAY_BE_SKIPPED = ("trino", "flink")
TOLD = "told"
_PORTS = (
    "LAKEHELM__ENGINES__SPARK__PORT",
    "LAKEHELM__ENGINES__SPARK__UI_PORT",
    "LAKEHELM__ENGINES__TRINO__PORT",
    "LAKEHELM__GATEWAY__ADMIN_PORT",
    "LAKEHELM__GATEWAY__SQL__PORT",
    "LAKEHELM__GATEWAY__SQL__POSTGRES_PORT",
    "LAKEHELM__UI__PORT",
)

pytest_plugins = ("tests.fixtures_runtime",)
# Java programs of tests live for minutes: they never earn back the work of its second compiler.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")

# No deadlines: two cores shared with a JVM make any of them a lottery.
settings.register_profile("dev", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, database=None)
# Of `make check`: a first look; `make test` draws as many examples as hypothesis does.
settings.register_profile("check", settings.get_profile("dev"), max_examples=20)
settings.load_profile("ci" if IS_CI else "dev")


class DemoConfig(Protocol):
    """Loads the demo profile below a folder; keyword arguments are `LAKEHELM__` overrides."""

    def __call__(self, home: Path | None = None, **overrides: object) -> Config: ...


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what asks for nothing special as fast; put what shares engines side by side."""
    for item in items:
        if NEEDS_MORE.isdisjoint(mark.name for mark in item.iter_markers()):
            if not item.nodeid.startswith(FAST_ROOMS):
                raise pytest.UsageError(
                    f"{item.nodeid} has no marker of what it needs, but `make check` looks for "
                    f"fast tests in {', '.join(FAST_ROOMS)} only: mark it, or move it there"
                )
            item.add_marker(pytest.mark.fast)
    # Shuffled as they are, folders stay together: a fixture of a package is set up once then.
    folders = {folder: n for n, folder in enumerate(dict.fromkeys(i.path.parent for i in items))}
    items.sort(key=lambda item: (_turn(item), folders[item.path.parent]))


def _turn(item: pytest.Item) -> int:
    return next((n for n, name in enumerate(("long", "lake")) if item.get_closest_marker(name)), 2)


class FilesAndTheLake(LoadFileScheduling):
    """`--dist loadfile`, but all tests of the demo lake are one: it is built once."""

    def _split_scope(self, nodeid: str) -> str:
        return LAKE_ROOM if nodeid.startswith(LAKE_ROOM) else super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FilesAndTheLake | None:
    """How the tests with engines are shared out."""
    return FilesAndTheLake(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a skipped test is a failed one, but for engines that a machine may lack."""
    report = yield
    is_skip = report.skipped and not hasattr(report, "wasxfail")
    if IS_CI and is_skip and not any(item.get_closest_marker(name) for name in MAY_BE_SKIPPED):
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not accept: {report.longrepr}"
    return report


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Where all results come together, failures are told at once: a run may not reach its end."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_AtOnce(config))


class _AtOnce:
    """Says which test failed and why when it fails, and the figures that tests tell."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if terminal is None:
            return
        if report.when == "call":
            for text in (value for name, value in report.user_properties if name == TOLD):
                terminal.ensure_newline()
                terminal.write_line(f"{report.nodeid}: {text}")
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            why = crash.message if crash else str(report.longrepr)
            terminal.ensure_newline()
            terminal.write_line(f"FAILED {report.nodeid} ({report.when}): {why[:500]}", red=True)


@pytest.fixture(scope="session", autouse=True)
def network_guard() -> Iterator[NetworkGuard]:
    """The guard that keeps tests on loopback; `opened()` lets a download through."""
    guard = NetworkGuard()
    with guard.installed():
        yield guard


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Say a figure in the terminal: what a test prints is not seen when workers run it."""
    return lambda text: record_property(TOLD, text)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the source tree."""
    return ROOT


@pytest.fixture(scope="session")
def load_demo_config(tmp_path_factory: pytest.TempPathFactory) -> DemoConfig:
    """The demo profile in a folder of its own, on free ports: `load_demo_config(home)`."""

    def load(home: Path | None = None, **overrides: object) -> Config:
        home = home or tmp_path_factory.mktemp("home")
        environ = {name: str(free_port()) for name in _PORTS}
        environ["LAKEHELM__STORE__PORT"] = str(free_port_pair())
        environ["LAKEHELM_HOME"] = str(home)
        environ.update({name: str(value) for name, value in overrides.items()})
        return load_config(ROOT / "config" / "lakehelm.yaml", environ).config

    return load


@pytest.fixture(scope="session")
def shared_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnerStore]:
    """One store for all tests of a worker: `emptied` it is as good as new and far cheaper."""
    with new_store(tmp_path_factory.mktemp("store")) as store:
        yield store


@pytest.fixture
def demo_config(load_demo_config: DemoConfig, tmp_path: Path) -> Config:
    """The demo profile below this test's own folder."""
    return load_demo_config(tmp_path / "home")
