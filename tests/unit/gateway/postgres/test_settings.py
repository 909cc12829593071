"""What a session answers itself."""

from __future__ import annotations

import pytest

from lakehouse_core.domain.errors import QueryFailedError
from lakehouse_core.gateway.postgres.settings import Settings


@pytest.fixture
def settings() -> Settings:
    return Settings({"user": "ana", "application_name": "psql"})


def test_a_transaction_is_told_and_a_failed_one_ends_in_rollback(settings: Settings) -> None:
    assert settings.answer("BEGIN").tag == "BEGIN"  # type: ignore[union-attr]
    assert settings.status == b"T"
    settings.failed()
    assert settings.status == b"E"
    assert settings.answer("COMMIT").tag == "ROLLBACK"  # type: ignore[union-attr]
    assert settings.status == b"I"


def test_a_failure_outside_of_a_transaction_breaks_nothing(settings: Settings) -> None:
    settings.failed()
    assert settings.status == b"I"


@pytest.mark.parametrize(
    ("sql", "name", "value"),
    [
        ("SET extra_float_digits = 3", "extra_float_digits", "3"),
        ("set session statement_timeout to 0;", "statement_timeout", "0"),
        ("SET lakehelm.tags TO 'team:bi'", "lakehelm.tags", "team:bi"),
        ("SET NAMES 'utf8'", "client_encoding", "UTF8"),
        ("SET TIME ZONE 'Europe/Berlin'", "TimeZone", "UTC"),
        ("SET DateStyle TO 'ISO'", "datestyle", "ISO"),
    ],
)
def test_a_setting_is_kept(settings: Settings, sql: str, name: str, value: str) -> None:
    assert settings.answer(sql).tag == "SET"  # type: ignore[union-attr]
    assert settings.get(name) == value


def test_the_search_path_names_the_schema(settings: Settings) -> None:
    assert settings.schema is None
    settings.answer('SET search_path TO "$user", demo, tpch')
    assert settings.schema == "demo"


def test_show_gives_a_row(settings: Settings) -> None:
    answer = settings.answer("SHOW transaction isolation level")
    assert answer is not None
    assert answer.rows is not None
    assert answer.rows.to_pydict() == {"transaction_isolation": ["read committed"]}


def test_a_reset_goes_back_to_the_start(settings: Settings) -> None:
    settings.answer("SET application_name TO 'x'")
    settings.answer("RESET application_name")
    assert settings.get("application_name") == "psql"


@pytest.mark.parametrize(
    "sql", ["SHOW nonsense", "SET ROLE admin", "SET server_version = '9'", "SET x",
            "SET client_encoding = 'LATIN1'", "SET SESSION AUTHORIZATION root"],
)  # fmt: skip
def test_what_cannot_be_set_or_shown_is_refused(settings: Settings, sql: str) -> None:
    with pytest.raises(QueryFailedError):
        settings.answer(sql)


@pytest.mark.parametrize("sql", ["SELECT 1", "", "'SET'", "WITH set AS (SELECT 1) TABLE set"])
def test_other_statements_are_left_to_the_router(settings: Settings, sql: str) -> None:
    assert settings.answer(sql) is None


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        ("0", None),
        ("1500", 1.5),
        ("30s", 30.0),
        ("5min", 300.0),
        ("DEFAULT", None),
        ("2 h", 7200.0),
    ],
)
def test_a_timeout_is_read_with_its_unit(
    settings: Settings, told: str, seconds: float | None
) -> None:
    settings.answer(f"SET statement_timeout TO '{told}'")
    assert settings.timeout_seconds == seconds


def test_options_of_the_connection_are_settings() -> None:
    given = {"user": "ana", "options": r"-c search_path=tpch --statement-timeout=5s -cx.y=a\ b"}
    settings = Settings(given)
    assert settings.schema == "tpch"
    assert settings.timeout_seconds == 5
    assert settings.get("x.y") == "a b"
