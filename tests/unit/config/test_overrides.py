"""Environment variables that win over the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakehouse_core.config.models import SparkEngine, TrinoEngine
from lakehouse_core.config.problems import InvalidConfigError
from tests.unit.config.conftest import BASE

if TYPE_CHECKING:
    from lakehouse_core.config.models import Config
    from tests.unit.config.conftest import Load


def trino(config: Config, name: str = "trino") -> TrinoEngine:
    engine = config.engines[name]
    assert isinstance(engine, TrinoEngine)
    return engine


def test_override_wins_over_the_file(load: Load) -> None:
    config = load(BASE + "ui: {port: 8600}\n", LAKEHELM__UI__PORT="8700").config
    assert config.ui.port == 8700


@pytest.mark.parametrize(
    "name", ["LAKEHELM__ENGINES__TRINO__PORT", "LAKEHELM__engines__Trino__port"]
)
def test_override_addresses_named_entries_in_any_case(load: Load, name: str) -> None:
    assert trino(load(BASE, **{name: "9000"}).config).port == 9000


def test_override_reaches_names_with_dashes_and_dots(load: Load) -> None:
    text = BASE + (
        "  trino-adhoc: {type: trino, catalog: lake}\n"
        "  spark: {type: spark, catalog: lake, conf: {spark.a.b: x}}\n"
    )
    config = load(
        text,
        LAKEHELM__ENGINES__TRINO_ADHOC__PORT="9000",
        LAKEHELM__ENGINES__SPARK__CONF__SPARK_A_B="y",
    ).config
    assert trino(config, "trino-adhoc").port == 9000
    spark = config.engines["spark"]
    assert isinstance(spark, SparkEngine)
    assert spark.conf == {"spark.a.b": "y"}


def test_override_may_add_an_entry(load: Load) -> None:
    config = load(
        BASE,
        LAKEHELM__ENGINES__EXTRA="{type: trino, catalog: lake}",
        LAKEHELM__ENGINES__EXTRA__PORT="9000",
    ).config
    assert trino(config, "extra").port == 9000


@pytest.mark.parametrize(
    ("text", "user"),
    [("ana", "ana"), ("007", "007"), ("on", "on"), ("2024-01-01", "2024-01-01"), ("12", "12")],
)
def test_override_of_a_text_keeps_its_spelling(load: Load, text: str, user: str) -> None:
    assert trino(load(BASE, LAKEHELM__ENGINES__TRINO__USER=text).config).user == user


def test_overrides_are_typed_by_their_key(load: Load) -> None:
    config = load(
        BASE,
        LAKEHELM__DEMO__SCALE="0.5",
        LAKEHELM__DEMO__WORKLOAD="false",
        LAKEHELM__STORE__RETENTION="7d",
        LAKEHELM__VERSION="1",
        LAKEHELM__ENGINES__TRINO__PASSWORD="null",
    ).config
    assert (config.demo.scale, config.demo.workload) == (0.5, False)
    assert config.store.retention.days == 7
    assert trino(config).password is None


@pytest.mark.parametrize(
    ("environ", "parts"),
    [
        (
            {"LAKEHELM__UI__PROT": "1"},
            ["LAKEHELM__UI__PROT: ui.prot = 1", "unknown key", "did you mean port?"],
        ),
        ({"LAKEHELM__UI__PORT": "x"}, ['LAKEHELM__UI__PORT: ui.port = "x"', "a whole number"]),
        ({"LAKEHELM__UI____PORT": "1"}, ["LAKEHELM__UI____PORT", "malformed override"]),
        ({"LAKEHELM__": "1"}, ["LAKEHELM__", "malformed override"]),
        ({"LAKEHELM__VERSION__X": "1"}, ["LAKEHELM__VERSION__X", "is a single value"]),
        ({"LAKEHELM__UI": "{port: "}, ["LAKEHELM__UI", "not YAML"]),
        (
            {"LAKEHELM__UI__PORT": "8600", "LAKEHELM__ui__port": "8700"},
            ["set by two variables, LAKEHELM__UI__PORT and LAKEHELM__ui__port"],
        ),
        ({"LAKEHELM__STORE__WRITER_TOKEN": "hunter2"}, ["store.writer_token = ****", "env:NAME"]),
        ({"LAKEHELM__UI__PORT": ""}, ['ui.port = ""', "a whole number"]),
    ],
)
def test_wrong_override_is_told_by_the_name_of_its_variable(
    load: Load, environ: dict[str, str], parts: list[str]
) -> None:
    with pytest.raises(InvalidConfigError) as caught:
        load(BASE, **environ)
    message = str(caught.value)
    assert [part for part in parts if part not in message] == [], message
    assert "hunter2" not in message


def test_ambiguous_override_is_refused(load: Load) -> None:
    text = BASE + ("  a-b: {type: duckdb, catalog: lake}\n  a_b: {type: duckdb, catalog: lake}\n")
    with pytest.raises(InvalidConfigError, match="ambiguous: A_B may mean a-b or a_b"):
        load(text, LAKEHELM__ENGINES__A_B__MAX_RUNNING="2")


def test_override_heals_a_value_whose_variable_is_missing(load: Load) -> None:
    config = load(BASE + "ui: {host: '${NOPE}'}\n", LAKEHELM__UI__HOST="here").config
    assert config.ui.host == "here"


def test_other_variables_of_ours_are_no_overrides(load: Load) -> None:
    assert load(BASE, LAKEHELM_HOME="/x", LAKEHELM_CACHE="/y").config.profile == "demo"
