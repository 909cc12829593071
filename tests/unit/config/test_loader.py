"""What a good configuration becomes, and where each value came from."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.config import load_config
from lakehouse_core.config.models import SparkEngine, TrinoEngine
from lakehouse_core.config.problems import InvalidConfigError
from tests.unit.config.conftest import BASE

if TYPE_CHECKING:
    from tests.unit.config.conftest import Load


def test_demo_profile_loads(repository: Path) -> None:
    loaded = load_config(repository / "config" / "lakehelm.yaml", {})
    assert set(loaded.config.engines) == {"duckdb", "spark", "trino"}
    assert loaded.config.home == repository / "var"
    assert loaded.path == repository / "config" / "lakehelm.yaml"


def test_production_example_loads_once_its_variables_are_set(repository: Path) -> None:
    environ = {
        "LAKE_HOME": "/srv/lakehelm",
        "SPARK_HOST": "spark.internal",
        "TRINO_HOST": "trino.internal",
    }
    config = load_config(repository / "config" / "prod.example.yaml", environ).config
    assert config.profile == "prod"
    assert config.home == Path("/srv/lakehelm")


def test_paths_become_absolute_home_by_the_file_others_by_home(load: Load, tmp_path: Path) -> None:
    config = load(
        BASE + "home: ../data\nstore: {spool: /spool, writer_token: 'file:secrets/w'}\n"
    ).config
    assert config.home == tmp_path / "data"
    assert config.store.path == tmp_path / "data/store/telemetry.duckdb"
    assert config.store.spool == Path("/spool")
    assert config.store.writer_token.get_secret_value() == f"file:{tmp_path}/data/secrets/w"
    assert config.catalogs["lake"].path == tmp_path / "data/lake/catalog.db"


def test_tilde_is_the_users_folder(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ana")
    assert load(BASE + "home: ~/lake\n").config.home == Path("/home/ana/lake")


def test_file_is_the_given_one_else_the_variable_else_the_default(
    load: Load, tmp_path: Path
) -> None:
    load(BASE + "profile: given\n")
    given = Path("config/test.yaml")
    (tmp_path / "config/lakehelm.yaml").write_text(BASE + "profile: default\n")
    (tmp_path / "other.yaml").write_text(BASE + "profile: variable\n")
    environ = {"LAKEHELM_CONFIG": str(tmp_path / "other.yaml")}
    assert load_config(given, environ).config.profile == "given"
    assert load_config(None, environ).config.profile == "variable"
    assert load_config(None, {}).config.profile == "default"


def test_variables_fill_texts_and_defaults_stand_in_for_unset_or_empty(load: Load) -> None:
    text = BASE + "profile: 'a-${X}-${Y:-y}-${Z:-}-$${X}'\nui: {port: '${PORT:-8600}'}\n"
    config = load(text, X="x", Y="").config
    assert config.profile == "a-x-y--${X}"
    assert config.ui.port == 8600
    assert load(text, X="x", PORT="8700").config.ui.port == 8700


def test_a_value_put_in_by_a_variable_is_not_read_for_variables_again(load: Load) -> None:
    assert load(BASE + "profile: '${X}'\n", X="${Y}").config.profile == "${Y}"


def test_merge_keys_and_aliases_of_yaml_work(load: Load) -> None:
    text = BASE.replace("trino: {type: trino, catalog: lake}", "") + (
        "  a: &a {type: trino, catalog: lake, max_running: 2}\n"
        "  b: &b {<<: *a, port: 8086}\n"
        "  c: *b\n"
    )
    engines = load(text).config.engines
    assert (engines["b"].max_running, engines["c"].max_running) == (2, 2)
    assert isinstance(engines["b"], TrinoEngine)
    assert engines["b"].port == 8086


def test_section_with_everything_commented_out_counts_as_absent(load: Load) -> None:
    config = load(BASE + "ui:\nhealth:\n  tables:\n").config
    assert config.ui.port == 8501
    assert config.health.tables == {}


def test_engine_settings_keep_their_text(load: Load) -> None:
    spark = load(
        BASE
        + "  spark: {type: spark, catalog: lake, conf: {spark.a: true, spark.b: 2, spark.c: x}}\n"
    ).config.engines["spark"]
    assert isinstance(spark, SparkEngine)
    assert spark.conf == {"spark.a": "true", "spark.b": "2", "spark.c": "x"}


def test_table_override_inherits_the_thresholds_it_does_not_name(load: Load) -> None:
    health = load(
        BASE
        + "health:\n"
        + "  defaults: {min_files: 5}\n"
        + "  tables: {'lake.demo.*': {snapshots: {warning: 1, critical: 2}}}\n"
    ).config.health
    override = health.tables["lake.demo.*"]
    assert override.min_files == 5
    assert override.snapshots.critical == 2
    assert override.manifests == health.defaults.manifests


def test_two_entries_may_speak_to_one_remote_engine(load: Load) -> None:
    engines = load(
        BASE
        + "  t1: {type: trino, catalog: lake, host: trino.internal, port: 443}\n"
        + "  t2: {type: trino, catalog: lake, host: trino.internal, port: 443, user: etl}\n"
    ).config.engines
    assert {"t1", "t2"} <= set(engines)


def test_wildcard_address_collides_with_loopback(load: Load) -> None:
    with pytest.raises(InvalidConfigError, match=r"is used by gateway\.admin_port too"):
        load(BASE + "ui: {host: 0.0.0.0, port: 8090}\n")


def test_durations_and_sizes_are_read_with_their_units(load: Load) -> None:
    store = load(BASE + "store: {retention: 1.5h, memory_limit: 512 MiB}\n").config.store
    assert store.retention == timedelta(minutes=90)
    assert store.memory_limit == 512 * 2**20


def test_origin_of_every_value_is_known(load: Load) -> None:
    loaded = load(
        BASE
        + "profile: '${P:-x}'\nhome: '${H}'\nui:\n  port: 8600\n"
        + "health:\n  defaults: {min_files: 5}\n  tables: {'a.*': {}}\n",
        H="/h",
        LAKEHELM__ENGINES__TRINO__PORT="9000",
        LAKEHELM__GATEWAY="{admin_port: 8091}",
    )
    origin = {key: str(value) for key, value in loaded.origins.items()}
    assert origin["version"] == "config/test.yaml:1"
    assert origin["profile"] == "config/test.yaml:7 (default of ${P})"
    assert origin["home"] == "config/test.yaml:8 (${H})"
    assert origin["ui.port"] == "config/test.yaml:10"
    assert origin["ui.host"] == "default"
    assert origin["engines.trino.port"] == "LAKEHELM__ENGINES__TRINO__PORT"
    assert origin["engines.trino.user"] == "default"
    assert origin["gateway.admin_port"] == "LAKEHELM__GATEWAY"
    assert origin["gateway.host"] == "default"
    assert origin['health.tables["a.*"].min_files'] == "config/test.yaml:12"
