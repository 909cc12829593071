"""A taken port is told with its holder and its key, and never taken for our own server."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.config.routing import EndpointConfig
from lakehouse_core.domain.errors import PortTakenError
from lakehouse_core.runtime.plan import port_uses
from lakehouse_core.runtime.ports import PortUse, holder_of, is_free, listens, require_free
from lakehouse_core.runtime.readiness import port_open
from tests.factories import free_port
from tests.unit.runtime.supervision import Stage, shell

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakehouse_core.config import Config


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


def test_a_taken_port_is_told_with_holder_and_key(taken: int) -> None:
    free = PortUse(process="ui", host="127.0.0.1", port=free_port(), key="ui.port")
    mine = PortUse(process="trino", host="127.0.0.1", port=taken, key="engines.trino.port")
    with pytest.raises(PortTakenError) as caught:
        require_free([free, mine])
    text = str(caught.value)
    assert f"Port {taken} for trino is taken by" in text
    assert f"pid {os.getpid()}" in text
    assert "engines.trino.port" in text
    assert "LAKEHELM__ENGINES__TRINO__PORT" in text
    assert "ui" not in text.split()


def test_all_taken_ports_are_told_at_once(taken: int) -> None:
    uses = [
        PortUse(process=name, host="127.0.0.1", port=taken, key=f"{name}.port")
        for name in ("one", "two")
    ]
    with pytest.raises(PortTakenError, match=r"one\.port(.|\n)*two\.port"):
        require_free(uses)


def test_a_port_is_free_again_after_its_server_has_gone(taken: int) -> None:
    assert not is_free("127.0.0.1", taken)
    assert is_free("127.0.0.1", free_port())
    holder = holder_of(taken)
    assert holder is not None
    assert holder.pid == os.getpid()


def test_a_server_is_not_ready_while_somebody_else_answers_on_its_port(
    taken: int, tmp_path: Path
) -> None:
    """As when another program takes the port between our check and our start."""
    stage = Stage(tmp_path)
    spec = shell("exec sleep 600", ready=port_open("127.0.0.1", taken), essential=False)
    supervisor = stage.supervisor([spec])
    try:
        for _ in range(3):
            supervisor.step()
        (status,) = supervisor.statuses()
        assert status.state == "starting"
        assert status.detail == f"another program listens on 127.0.0.1:{taken}"
    finally:
        supervisor.stop()
    assert listens(os.getpid(), taken)


def test_every_port_of_the_configuration_is_asked_for(demo_config: Config) -> None:
    uses = {(use.key, use.offset): use.port for use in port_uses(demo_config)}
    assert uses == {
        ("store.port", 0): demo_config.store.port,
        ("store.port", 1): demo_config.store.port + 1,  # readers
        ("engines.spark.port", 0): demo_config.engines["spark"].port,  # type: ignore[union-attr]
        ("engines.spark.ui_port", 0): demo_config.engines["spark"].ui_port,  # type: ignore[union-attr]
        ("engines.trino.port", 0): demo_config.engines["trino"].port,  # type: ignore[union-attr]
        ("gateway.admin_port", 0): demo_config.gateway.admin_port,
        ("gateway.sql.port", 0): demo_config.gateway.sql.port,
        ("gateway.sql.postgres_port", 0): demo_config.gateway.sql.postgres_port,
        ("ui.port", 0): demo_config.ui.port,
    }


def test_a_port_that_an_endpoint_of_the_router_has_is_asked_for(demo_config: Config) -> None:
    own, below = EndpointConfig(port=8097), EndpointConfig(path="/etl")
    routing = demo_config.routing.model_copy(update={"endpoints": {"bi": own, "etl": below}})
    config = demo_config.model_copy(update={"routing": routing})
    uses = {use.key: use for use in port_uses(config)}
    assert uses["routing.endpoints.bi.port"].port == 8097
    assert uses["routing.endpoints.bi.port"].host == config.gateway.sql.host
    assert "routing.endpoints.etl.port" not in uses


def test_the_engine_that_is_started_gets_its_ports_wherever_it_stands(demo_config: Config) -> None:
    """Engines that others run may stand before ours in the file."""
    engines = {
        f"other-{name}": demo_config.engines[name].model_copy(
            update={"managed": False, "host": "192.0.2.1"}
        )
        for name in ("spark", "trino")
    } | dict(demo_config.engines)
    config = demo_config.model_copy(update={"engines": engines})
    assert {use.key for use in port_uses(config)} == {use.key for use in port_uses(demo_config)}
