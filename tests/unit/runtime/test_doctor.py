"""Doctor: each check says what was found and how to mend it; one bad check hides no other."""

from __future__ import annotations

import socket
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.domain.errors import StoreUnavailableError
from lakehouse_core.runtime.doctor import Check, examine
from lakehouse_core.runtime.rundir import ProcessStatus, RunDir
from lakehouse_core.store.owner import OwnerStore
from tests.unit.catalog.lakes import Lake
from tests.unit.runtime.machines import fake_java, machine
from tests.unit.runtime.test_rundir import run_status

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.config import Config
    from lakehouse_core.config.environment import Machine
    from tests.conftest import DemoConfig

PORTS = ("STORE", "GATEWAY", "UI")


def answering_store(config: Config) -> OwnerStore:
    return OwnerStore.open(config.store)


def silent_store(config: Config) -> OwnerStore:
    raise StoreUnavailableError(f"The owner of the store does not answer at {config.store.port}")


@pytest.fixture
def variables(load_demo_config: DemoConfig, tmp_path: Path) -> dict[str, object]:
    """A machine with both Javas and the demo profile on free ports."""
    config = load_demo_config(tmp_path / "home")
    fake_java(tmp_path / "jvm" / "17", "17.0.15")
    fake_java(tmp_path / "jvm" / "25", "25.0.3")
    return {
        "PATH": "/nonexistent",
        "LAKEHELM_JAVA_DIRS": tmp_path / "jvm" / "*",
        "LAKEHELM_HOME": tmp_path / "home",
        "LAKEHELM__STORE__PORT": config.store.port,
        "LAKEHELM__ENGINES__SPARK__PORT": config.engines["spark"].port,  # type: ignore[union-attr]
        "LAKEHELM__ENGINES__SPARK__UI_PORT": config.engines["spark"].ui_port,  # type: ignore[union-attr]
        "LAKEHELM__ENGINES__TRINO__PORT": config.engines["trino"].port,  # type: ignore[union-attr]
        "LAKEHELM__GATEWAY__ADMIN_PORT": config.gateway.admin_port,
        "LAKEHELM__GATEWAY__SQL__PORT": config.gateway.sql.port,
        "LAKEHELM__GATEWAY__SQL__POSTGRES_PORT": config.gateway.sql.postgres_port,
        "LAKEHELM__UI__PORT": config.ui.port,
    }


def look(repository: Path, here: Machine, store: object = silent_store) -> dict[str, Check]:
    checks = examine(repository / "config" / "lakehelm.yaml", here, store)  # type: ignore[arg-type]
    found = {check.id: check for check in checks}
    assert len(found) == len(checks), "every check has a name of its own"
    assert all(check.fix for check in checks if check.status == "fail"), "a fault has a remedy"
    return found


def test_a_fresh_machine_has_nothing_wrong_that_up_would_not_do(
    repository: Path, tmp_path: Path, variables: dict[str, object]
) -> None:
    checks = look(repository, machine(tmp_path, **variables))
    assert {c.id: c for c in checks.values() if c.status == "fail"} == {}
    assert checks["java-spark"].found.startswith("17.0.15 in ")
    assert checks["java-trino"].found.startswith("25.0.3 in ")
    assert checks["jar-sqlite-jdbc"].status == "warn"
    assert checks["trino-server"].status == "warn"
    assert checks["catalog-lake"].status == "warn"
    assert checks["engine-trino"].status == "warn"
    assert checks["duckdb-iceberg"].status == "ok"


@pytest.mark.slow
def test_missing_java_is_a_fault_for_spark_and_a_warning_for_trino(
    repository: Path, tmp_path: Path, variables: dict[str, object]
) -> None:
    here = machine(tmp_path, **variables | {"LAKEHELM_JAVA_DIRS": "", "JAVA_HOME": "/nowhere"})
    checks = look(repository, here)
    assert checks["java-spark"].status == "fail"
    assert "no Java was found" in checks["java-spark"].found
    assert "JDK 17 or 21" in str(checks["java-spark"].fix)
    assert checks["java-trino"].status == "warn"
    assert checks["java-home"].status == "warn"
    assert "/nowhere" in checks["java-home"].found


def test_a_wrong_configuration_is_one_finding(
    repository: Path, tmp_path: Path, variables: dict[str, object]
) -> None:
    here = machine(tmp_path, **variables | {"LAKEHELM__UI__PORT": "not a port"})
    checks = look(repository, here)
    assert checks["config"].status == "fail"
    assert "ui.port" in checks["config"].found


@pytest.mark.slow
def test_a_port_held_by_a_stranger_is_a_fault(
    repository: Path, tmp_path: Path, variables: dict[str, object]
) -> None:
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", int(str(variables["LAKEHELM__UI__PORT"]))))
        stranger.listen()
        checks = look(repository, machine(tmp_path, **variables))
    assert checks["port-ui.port"].status == "fail"
    assert "ui.port" in str(checks["port-ui.port"].fix)
    assert checks["port-gateway.admin_port"].status == "ok"


@pytest.mark.slow
def test_a_catalog_is_read_or_told_to_be_broken(
    repository: Path, tmp_path: Path, variables: dict[str, object]
) -> None:
    path = tmp_path / "home" / "lake" / "catalog.db"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"this is not a database, but it is long enough to be taken for one" * 20)
    assert look(repository, machine(tmp_path, **variables))["catalog-lake"].status == "fail"
    path.unlink()
    with closing(Lake(path.parent)) as lake:
        lake.create("a")
        lake.create("b")
        lake.create("c")
        lake.execute("UPDATE iceberg_tables SET catalog_name = 'other' WHERE table_name = 'c'")
    checks = look(repository, machine(tmp_path, **variables))
    assert checks["catalog-lake"].found.startswith("2 tables in ")


@pytest.mark.slow
def test_while_lakehelm_runs_a_silent_engine_is_a_fault_and_one_left_out_is_not(
    repository: Path, tmp_path: Path, variables: dict[str, object]
) -> None:
    processes = (
        ProcessStatus(name="spark", state="starting", detail="not yet", log="spark.log"),
        ProcessStatus(name="trino", state="skipped", detail="needs Java 24"),
    )
    RunDir(tmp_path / "home").write(run_status(processes=processes))
    checks = look(repository, machine(tmp_path, **variables), answering_store)
    assert checks["engine-spark"].status == "fail"
    assert checks["engine-trino"].found == "left out: needs Java 24"
    assert checks["engine-trino"].status == "warn"
    assert checks["process-spark"].fix == "Read spark.log"
    assert checks["store"].found.startswith("answers in ")
    assert checks["backup"].status == "warn"
    assert "store backup" in str(checks["backup"].fix)


@pytest.mark.slow
def test_a_store_that_was_damaged_is_told_with_what_is_left_of_it(
    repository: Path, tmp_path: Path, variables: dict[str, object]
) -> None:
    file = tmp_path / "home" / "store" / "telemetry.duckdb"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"no database")
    checks = look(repository, machine(tmp_path, **variables), answering_store)
    assert checks["store-recovery"].status == "fail"
    assert "history begins anew" in checks["store-recovery"].found
    assert "telemetry.duckdb.corrupt-" in checks["store-recovery"].found
