"""Every way a configuration can be wrong, and what the message must say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.config import load_config
from lakehouse_core.config.problems import InvalidConfigError
from lakehouse_core.domain.errors import ConfigError
from tests.unit.config.conftest import BASE

if TYPE_CHECKING:
    from tests.unit.config.conftest import Load

# (what is wrong, text appended to BASE, parts of the message)
WRONG_VALUES = [
    (
        "price of an engine that is not there",
        "prices: {book: {t: {engine: duckbd, unit: core_hour, list_price: '1'}}}\n",
        ["prices.book.t.engine", "no such engine", "did you mean duckdb?"],
    ),
    (
        "bill of an engine that is not there",
        "prices: {bill_names: {'*emr*': sparks}}\n",
        ["prices.bill_names.*emr*", "no such engine, nor the storage of a catalog"],
    ),
    (
        "bill of a storage that is not there",
        "prices: {bill_names: {'*s3*': 'storage:lak'}}\n",
        ["prices.bill_names.*s3*", "did you mean storage:lake?"],
    ),
    (
        "edition of an engine that is not there",
        "prices: {editions: {snow: enterprise}}\n",
        ["prices.editions.snow", "no such engine"],
    ),
    (
        "edition that nobody sells",
        "prices: {editions: {duckdb: entreprise}}\n",
        ["prices.editions.duckdb", "no price is of this edition", "did you mean enterprise?"],
    ),
    (
        "unknown section",
        "stoer: {port: 1}\n",
        ["config/test.yaml:7: stoer", "unknown key", "did you mean store?", "allowed: version,"],
    ),
    (
        "unknown key in a section",
        "gateway: {admin_prot: 8091}\n",
        ["test.yaml:7: gateway.admin_prot = 8091", "unknown key", "did you mean admin_port?"],
    ),
    (
        "unknown key in one kind of engine",
        "  spark: {type: spark, catalog: lake, heap: 2GiB}\n",
        ["test.yaml:7: engines.spark.heap", "unknown key", "driver_memory"],
    ),
    (
        "key in the wrong case",
        "ui: {Port: 8500}\n",
        ["ui.Port = 8500", "unknown key", "did you mean port?"],
    ),
    ("text for a number", "ui: {port: many}\n", ['ui.port = "many"', "expected a whole number"]),
    ("true for a number", "ui: {port: yes}\n", ["ui.port = true", "not true or false"]),
    ("port out of range", "ui: {port: 70000}\n", ["ui.port = 70000", "or equal to 65535"]),
    ("port zero", "ui: {port: 0}\n", ["ui.port = 0", "greater than or equal to 1"]),
    ("fraction for a count", "demo: {seed: 1.5}\n", ["demo.seed = 1.5", "a whole number"]),
    ("empty host", "ui: {host: ''}\n", ['ui.host = ""', "must not be empty"]),
    ("empty path", "store: {path: ''}\n", ["store.path", "expected a path"]),
    ("number without unit", "store: {retention: 90}\n", ["store.retention = 90", "e.g. 30s"]),
    ("unknown unit", "store: {retention: 90y}\n", ['store.retention = "90y"', "ms, s, m, h"]),
    ("negative duration", "store: {retention: -1d}\n", ["store.retention", "e.g. 30s"]),
    ("duration too long", "store: {retention: 99999999999d}\n", ["store.retention", "below"]),
    ("job that never rests", "agents: {probe_every: 0s}\n", ["agents.probe_every", "greater than"]),
    ("negative size", "store: {memory_limit: -5}\n", ["store.memory_limit = -5", "greater than 0"]),
    ("absurd size", "store: {memory_limit: 1e999999999GB}\n", ["memory_limit", "e.g. 512MiB"]),
    (
        "word that is not offered",
        "logging: {level: debugg}\n",
        ['logging.level = "debugg"', "allowed: debug, info, warning, error", "mean debug?"],
    ),
    (
        "unknown engine type",
        "  x: {type: trno, catalog: lake}\n",
        ["engines.x.type", "no such type", "did you mean trino?", "allowed: duckdb, spark, trino"],
    ),
    (
        "engine without type",
        "  x: {catalog: lake}\n",
        ["test.yaml:7: engines.x.type", "is missing"],
    ),
    ("required key missing", "  x: {type: trino}\n", ["engines.x.catalog", "is missing"]),
    ("engine that is a number", "  x: 5\n", ["engines.x = 5", "expected a mapping"]),
    ("engine with nothing in it", "  x:\n", ["engines.x", "expected a mapping"]),
    ("section that is a list", "ui: [1]\n", ["ui = a list", "expected a mapping"]),
    (
        "name that no label can hold",
        "  'My Engine': {type: duckdb, catalog: lake}\n",
        ["engines.My Engine", "a name is lower-case letters"],
    ),
    (
        "engine on an unknown catalog",
        "  x: {type: duckdb, catalog: lak}\n",
        ['engines.x.catalog = "lak"', "no such catalog", "did you mean lake?", "allowed: lake"],
    ),
    (
        "unknown source",
        "collect:\n  trion: {every: 10s}\n",
        ["test.yaml:8: collect.trion", "no such source", "did you mean trino?", "iceberg"],
    ),
    (
        "two of ours on one port",
        "ui: {port: 8090}\n",
        ["ui.port", "port 8090 is used by gateway.admin_port too"],
    ),
    (
        "page server on the port of the store's readers",
        "ui: {port: 9495}\n",
        ["ui.port", "port 9495 is used by store.port (readers) too"],
    ),
    (
        "store open to the network",
        "store: {host: 0.0.0.0}\n",
        ["test.yaml:7: store.host", "this machine only", "allowed: 127.0.0.1, localhost, ::1"],
    ),
    (
        "port of an endpoint that the SQL port has",
        (
            "gateway: {host: localhost, sql: {enabled: true, port: 8095}}\n"
            "routing: {endpoints: {bi: {port: 8095}}}\n"
        ),
        ["test.yaml:8: routing.endpoints.bi.port", "port 8095 is used by gateway.sql.port too"],
    ),
    (
        "second Trino to be started",
        (
            "  mine: {type: trino, catalog: lake, managed: true, port: 8081}\n"
            "  theirs: {type: trino, catalog: lake, managed: true, port: 8082}\n"
        ),
        ["engines.theirs.managed = true", "starts one engine of type trino, and that is mine"],
    ),
    ("no port for readers", "store: {port: 65535}\n", ["store.port = 65535", "port after it"]),
    (
        "thresholds in the wrong order",
        "health: {defaults: {snapshots: {warning: 500, critical: 100}}}\n",
        ["health.defaults.snapshots", "warning (500) must not be above critical (100)"],
    ),
    (
        "percentage for a share",
        "health: {defaults: {delete_ratio: {warning: 10, critical: 1}}}\n",
        ["health.defaults.delete_ratio.warning = 10", "less than or equal to 1"],
    ),
    (
        "threshold that is not a number",
        "health: {defaults: {skew: {warning: .nan, critical: 3}}}\n",
        ["health.defaults.skew.warning", "finite number"],
    ),
    (
        "error below a name with dots",
        "health: {tables: {lake.demo.*: {skewed: 1}}}\n",
        ['health.tables["lake.demo.*"].skewed = 1', "did you mean skew?"],
    ),
    (
        "unset variable",
        "ui: {host: '${UI_HOST}'}\n",
        ["test.yaml:7: ui.host", "variable UI_HOST is not set", "${UI_HOST:-default}"],
    ),
    ("malformed variable", "ui: {host: '${1}'}\n", ["ui.host", "malformed", "$${"]),
    ("unclosed variable", "ui: {host: '${HOST'}\n", ["ui.host", "malformed"]),
    ("variable in a default", "ui: {host: '${A:-${B}}'}\n", ["ui.host", "malformed"]),
    (
        "duplicate key",
        "ui: {port: 1}\nui: {port: 2}\n",
        ["test.yaml:8: ui", "given twice; first on line 7"],
    ),
    ("key that is not text", "yes: 1\n", ["test.yaml:7", "a key must be text"]),
    (
        "impossible date",
        "profile: 2024-13-45\n",
        ["test.yaml:7: profile", "looks like a YAML timestamp"],
    ),
    ("list as key", "? [a]\n: 1\n", ["test.yaml:7", "a key must be text"]),
]

# (what is wrong, the whole file, parts of the message)
WRONG_FILES: list[tuple[str, str | bytes, list[str]]] = [
    ("empty", "", ["test.yaml: the file is empty"]),
    ("only comments", "# nothing\n", ["the file is empty"]),
    ("a list", "- 1\n", ["test.yaml:1: the file must be a mapping", "holds a list"]),
    ("one word", "hello\n", ["the file must be a mapping", "single value"]),
    ("wrong version", BASE.replace("version: 1", "version: 2"), ["version = 2", "allowed: 1"]),
    ("no version", BASE.replace("version: 1\n", ""), ["test.yaml: version", "is missing"]),
    ("unclosed bracket", "version: 1\nui: [\n", ["test.yaml:3:1", "YAML syntax error"]),
    ("tab", "version: 1\nui:\n\tport: 1\n", ["test.yaml:3:1", "YAML syntax error"]),
    ("two documents", "version: 1\n---\nversion: 1\n", ["test.yaml:2:1", "another document"]),
    ("unknown alias", "version: *nope\n", ["test.yaml:1:10", "undefined alias"]),
    ("object of Python", "version: !!python/object:os.system {}\n", ["test.yaml", "version"]),
    ("binary", b"\x7fELF\x02\x01\x01\x00\xff\xfe", ["is not UTF-8 text"]),
    ("control characters", "version: 1\x00\n", ["not readable as YAML"]),
    ("alias of itself", "version: &a {b: *a}\n", ["test.yaml:1", "alias refers to"]),
    ("nested without end", "a: " + "[" * 500, ["nested too deeply"]),
    (
        "aliases that unfold without end",
        "a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n"
        + "".join(f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 9)),
        ["unfolds into too many values"],
    ),
    (
        "a number of 5,000 digits",
        f"version: {'9' * 5_000}\n",
        ["version", "looks like a YAML int but is none"],
    ),
]


@pytest.mark.parametrize(
    ("text", "parts"), [case[1:] for case in WRONG_VALUES], ids=[case[0] for case in WRONG_VALUES]
)
def test_wrong_value_is_told_with_place_value_and_remedy(
    load: Load, text: str, parts: list[str]
) -> None:
    with pytest.raises(InvalidConfigError) as caught:
        load(BASE + text)
    message = str(caught.value)
    assert [part for part in parts if part not in message] == [], message
    assert len(caught.value.problems) == 1, message


@pytest.mark.parametrize(
    ("text", "parts"), [case[1:] for case in WRONG_FILES], ids=[case[0] for case in WRONG_FILES]
)
def test_file_that_is_no_configuration_is_told_in_our_words(
    load: Load, text: str | bytes, parts: list[str]
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(text)
    message = str(caught.value)
    assert [part for part in parts if part not in message] == [], message


def test_all_problems_are_told_at_once_in_the_order_of_the_file(load: Load) -> None:
    with pytest.raises(InvalidConfigError) as caught:
        load(
            BASE
            + "  x: {type: duckdb, catalog: lak, thread: 2}\n"
            + "ui: {port: many, host: '${NOPE}'}\n"
            + "logging: {level: loud}\n"
        )
    keys = [problem.key for problem in caught.value.problems]
    assert sorted(keys[:2]) == ["engines.x.catalog", "engines.x.thread"]
    assert sorted(keys[2:4]) == ["ui.host", "ui.port"]
    assert keys[4:] == ["logging.level"]
    assert "5 problems" in str(caught.value)


def test_missing_file_is_told_with_the_ways_to_name_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no such file; name one with --config or LAKEHELM_"):
        load_config(tmp_path / "nope.yaml", {})


def test_folder_instead_of_a_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a folder"):
        load_config(tmp_path, {})


def test_file_that_may_not_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError  # root may read anything, so the refusal is made by hand

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(ConfigError, match="may not be read by this user"):
        load_config(tmp_path / "secret.yaml", {})


def test_endless_file_is_given_up(load: Load) -> None:
    with pytest.raises(ConfigError, match="larger than 4 MiB"):
        load(b"#" * (5 * 2**20))


@pytest.mark.parametrize(
    "text",
    [
        "store: {writer_token: hunter2}\n",
        "store: {writer_tokn: hunter2}\n",
        "store: {writer_token: '${TOKEN}'}\n",
        "store: {writer_token: [hunter2]}\n",
        "  x: {type: trino, catalog: lake, password: hunter2}\n",
        "  x: {type: trno, catalog: lake, password: hunter2}\n",
        "ui: {port: '${DB_PASSWORD}'}\n",
        "store: {password: {a: hunter2}}\n",
    ],
)
def test_secret_value_is_refused_and_never_shown(load: Load, text: str) -> None:
    with pytest.raises(InvalidConfigError) as caught:
        load(BASE + text, TOKEN="hunter2", DB_PASSWORD="hunter2")
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(caught.value.problems)
    # Nor may the chain of causes carry it into a traceback.
    assert "hunter2" not in str(caught.value.__cause__ or caught.value.__context__)


def test_plain_secret_is_told_how_to_be_given(load: Load) -> None:
    with pytest.raises(InvalidConfigError, match=r"store.writer_token = \*+: .*env:NAME .*file:PA"):
        load(BASE + "store: {writer_token: hunter2}\n")
