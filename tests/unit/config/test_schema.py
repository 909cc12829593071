"""The JSON schema that editors use agrees with the models."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
import yaml

from lakehouse_core.config.schema import json_schema

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(json_schema())
    return loaded


def test_checked_in_schema_is_the_generated_one(repository: Path) -> None:
    stored = (repository / "config" / "schema.json").read_text(encoding="utf-8")
    assert stored == json_schema(), "stale: run `lakehelm config schema > config/schema.json`"


@pytest.mark.parametrize("name", ["lakehelm.yaml", "prod.example.yaml"])
def test_shipped_files_hold_against_the_schema(
    repository: Path, schema: dict[str, Any], name: str
) -> None:
    text = (repository / "config" / name).read_text(encoding="utf-8")
    jsonschema.validate(yaml.safe_load(text), schema)


@pytest.mark.parametrize(
    "change",
    [
        {"ui": {"prot": 1}},
        {"ui": {"port": 70_000}},
        {"ui": {"port": "many"}},
        {"store": {"retention": "90y"}},
        {"logging": {"level": "loud"}},
        {"engines": {"x": {"type": "trino"}}},
        {"version": 2},
    ],
)
def test_schema_refuses_what_the_loader_refuses(
    schema: dict[str, Any], change: dict[str, Any]
) -> None:
    good: dict[str, Any] = {"version": 1, "catalogs": {}, "engines": {}}
    jsonschema.validate(good, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**good, **change}, schema)


def test_schema_takes_variables_where_numbers_and_words_belong(schema: dict[str, Any]) -> None:
    text = """
    version: 1
    catalogs: {}
    engines: {}
    ui: {port: "${PORT:-8501}"}
    demo: {workload: "${WORKLOAD}"}
    logging: {level: "${LEVEL:-info}"}
    store: {retention: "${DAYS}d"}
    """
    jsonschema.validate(yaml.safe_load(text), schema)
