"""A command finds the store, or says what to start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakehouse_core.bootstrap import open_store
from lakehouse_core.domain.errors import ConfigError, StoreUnavailableError
from lakehouse_core.store.owner import OwnerStore

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.config import Config


def test_where_nothing_was_started_it_is_said_what_to_start(demo_config: Config) -> None:
    with pytest.raises(StoreUnavailableError, match="lakehelm up"):
        open_store(demo_config)


def test_a_store_that_was_only_collected_into_was_not_started_either(demo_config: Config) -> None:
    """`collect --once` makes the file and no token."""
    OwnerStore.open(demo_config.store).close()
    with pytest.raises(StoreUnavailableError, match=r"lakehelm up.*secrets/store-reader"):
        open_store(demo_config)


def test_a_token_that_cannot_be_read_is_a_fault_of_the_configuration(
    demo_config: Config, tmp_path: Path
) -> None:
    token = tmp_path / "home" / "secrets" / "store-reader"
    token.mkdir(parents=True)
    with pytest.raises(ConfigError, match="cannot be read"):
        open_store(demo_config)
