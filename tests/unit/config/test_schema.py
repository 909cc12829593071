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
def schema() -> Any:
    loaded = json.loads(json_schema())
    jsonschema.Draft202012Validator.check_schema(loaded)
    return jsonschema.Draft202012Validator(loaded)


def test_checked_in_schema_is_the_generated_one(repository: Path) -> None:
    stored = (repository / "config" / "schema.json").read_text(encoding="utf-8")
    assert stored == json_schema(), "stale: run `lakehelm config schema > config/schema.json`"


@pytest.mark.parametrize("name", ["lakehelm.yaml", "prod.example.yaml"])
def test_shipped_files_hold_against_the_schema(repository: Path, schema: Any, name: str) -> None:
    text = (repository / "config" / name).read_text(encoding="utf-8")
    schema.validate(yaml.safe_load(text))


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
def test_schema_refuses_what_the_loader_refuses(schema: Any, change: dict[str, Any]) -> None:
    good: dict[str, Any] = {"version": 1, "catalogs": {}, "engines": {}}
    assert schema.is_valid(good)
    assert not schema.is_valid({**good, **change})


def test_schema_takes_variables_where_numbers_and_words_belong(schema: Any) -> None:
    text = """
    version: 1
    catalogs: {}
    engines: {}
    ui: {port: "${PORT:-8501}"}
    demo: {workload: "${WORKLOAD}"}
    logging: {level: "${LEVEL:-info}"}
    store: {retention: "${DAYS}d"}
    """
    schema.validate(yaml.safe_load(text))
