"""From the configuration to the sources of the clouds; nothing is contacted."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from collectors.athena.source import AthenaSource
from collectors.registry import build_source, source_names
from collectors.snowflake.config import OVERLAP
from collectors.snowflake.source import SnowflakeSource
from lakehouse_core.config import load_config
from lakehouse_core.domain.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.config import Config

ATHENA = {
    "type": "athena",
    "catalog": "lake",
    "region": "eu-central-1",
    "workgroups": ["primary", "adhoc"],
    "access_key_id": "env:LAKE_KEY",
    "secret_access_key": "env:LAKE_SECRET",
}
SNOWFLAKE = {
    "type": "snowflake",
    "catalog": "lake",
    "account": "org-one",
    "user": "lakehelm",
    "password": "env:LAKE_SECRET",
}


def load(repository: Path, folder: Path, **engines: dict[str, Any]) -> Config:
    data = yaml.safe_load((repository / "config" / "lakehelm.yaml").read_text())
    data["home"] = str(folder)
    data["engines"] = engines
    data["collect"] = {name: {"every": "5m"} for name in engines}
    del data["routing"], data["finops"], data["prices"]  # they are about other engines
    file = folder / "lakehelm.yaml"
    file.write_text(yaml.safe_dump(data))
    return load_config(file, {}).config


@pytest.fixture
def config(repository: Path, tmp_path: Path) -> Config:
    return load(repository, tmp_path, cloud=ATHENA, snow=SNOWFLAKE)


def test_both_are_built_with_their_secrets(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE_KEY", "AKIA")
    monkeypatch.setenv("LAKE_SECRET", "s3cr3t")
    assert set(source_names(config)) == {"cloud", "snow"}
    athena = build_source("cloud", config, store=None)
    assert isinstance(athena, AthenaSource)
    assert athena.name == "cloud"
    snowflake = build_source("snow", config, store=None)
    assert isinstance(snowflake, SnowflakeSource)
    assert "s3cr3t" not in repr((athena.__dict__, snowflake.__dict__))


def test_the_overlap_of_snowflake_is_days_though_nobody_says_so(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKE_SECRET", "s3cr3t")
    source = build_source("snow", config, store=None)
    assert source.capabilities.overlap == OVERLAP == timedelta(days=3)
    assert "metering" in source.capabilities.tables


def test_a_missing_secret_is_named_not_guessed(config: Config) -> None:
    with pytest.raises(ConfigError, match="LAKE_SECRET"):
        build_source("snow", config, store=None)


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        ({**ATHENA, "secret_access_key": None}, "go together"),
        ({**ATHENA, "profile": "prod"}, "either profile or access_key_id"),
        ({**ATHENA, "workgroups": []}, "must not be empty"),
        ({**ATHENA, "access_key_id": "AKIAREALKEY"}, "never as a value"),
        ({**SNOWFLAKE, "oauth_token": "env:T"}, "exactly one of"),
        ({**SNOWFLAKE, "password": None}, "exactly one of"),
        ({**SNOWFLAKE, "private_key_passphrase": "env:P"}, "needs private_key"),
    ],
)
def test_a_wrong_section_is_told(
    repository: Path, tmp_path: Path, engine: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        load(repository, tmp_path, one={k: v for k, v in engine.items() if v is not None})
    assert "AKIAREALKEY" not in str(caught.value)
