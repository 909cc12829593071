"""What the gateway is put together from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.config.routing import RoutingConfig
from lakehouse_core.gateway.assemble import ways_in

if TYPE_CHECKING:
    from lakehouse_core.config.models import Config


def test_an_endpoint_is_reached_by_its_path_and_by_its_port(demo_config: Config) -> None:
    routing = RoutingConfig.model_validate(
        {
            "endpoints": {
                "bi": {"path": "/bi", "port": 8097},
                "etl": {"path": "/etl"},
                "adhoc": {"port": 8098},
            }
        }
    )
    config = demo_config.model_copy(update={"routing": routing})
    assert ways_in(config) == {"/bi": "bi", 8097: "bi", "/etl": "etl", 8098: "adhoc"}
