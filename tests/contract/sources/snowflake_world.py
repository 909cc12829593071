"""An account with one warehouse, in the hands of a test."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from collectors.snowflake.config import Credentials, SnowflakeSettings
from collectors.snowflake.source import SnowflakeSource
from collectors.understanding import Understanding
from lakehouse_core.domain.query import EngineId
from tests.contract.sources.warehouse import account
from tests.contract.sources.wire import Wire
from tests.contract.sources.worlds import BYTES, SQL
from tests.factories import NOW

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path

    from collectors.base import Source


class SnowflakeWorld:
    """Snowflake as fakesnow has it, behind a wire that can be cut."""

    can_hold_torn_text = False  # its texts are UTF-8, which has no halves of characters

    def __init__(self, _folder: Path) -> None:
        self.account = account()
        self.account.empty()
        self.wire = Wire(self.account.port)
        self.place = self.wire.url
        self.now = NOW

    def source(self) -> Source:
        return snowflake_source(self.place, now=self.now)

    def run(self, number: int, at: datetime = NOW) -> str:
        return self.begin(number, at)()

    def begin(self, number: int, at: datetime = NOW) -> Callable[[], str]:
        query_id = f"01b00000-0000-0000-0000-{number:012}"
        self.account.add("QUERY_HISTORY", **query(query_id, at, SQL.format(number)))

        def end() -> str:
            self.account.change(
                query_id,
                EXECUTION_STATUS="SUCCESS",
                END_TIME=at + timedelta(seconds=1),
                TOTAL_ELAPSED_TIME=1_000,
                BYTES_SCANNED=BYTES,
            )
            return query_id

        return end

    def spoil(self) -> None:
        row = query("01b00000-0000-0000-0000-999999999999", NOW, "SELECT 1")
        self.account.add("QUERY_HISTORY", **row | {"EXECUTION_STATUS": "PERPLEXED"})

    def drop(self) -> None:
        self.now = NOW + timedelta(days=400)
        self.account.empty()

    def vanish(self) -> None:
        self.wire.close()

    def close(self) -> None:
        self.wire.close()


def query(query_id: str, at: datetime, sql: str) -> dict[str, Any]:
    """A row of QUERY_HISTORY of a SELECT that runs."""
    return {
        "QUERY_ID": query_id,
        "QUERY_TEXT": sql,
        "DATABASE_NAME": "LAKE",
        "SCHEMA_NAME": "DEMO",
        "QUERY_TYPE": "SELECT",
        "USER_NAME": "ANA",
        "ROLE_NAME": "ANALYST",
        "WAREHOUSE_NAME": "BI_WH",
        "WAREHOUSE_SIZE": "X-Small",
        "EXECUTION_STATUS": "RUNNING",
        "START_TIME": at,
        "TOTAL_ELAPSED_TIME": 500,
        "COMPILATION_TIME": 50,
        "EXECUTION_TIME": 450,
        "BYTES_SCANNED": BYTES // 2,
    }


def snowflake_source(place: str, now: datetime = NOW, **changes: Any) -> SnowflakeSource:
    """A source on an account, with small batches."""
    url = urlsplit(place)
    given: dict[str, Any] = {
        "engine_id": EngineId("snowflake"),
        "account": "org-world",
        "user": "lakehelm",
        "url": place,
        "host": url.hostname,
        "port": url.port,
        "scheme": "http",
        "credentials": Credentials(password="testing"),
        "catalog": "lake",
        "login_timeout": timedelta(seconds=2),
        "statement_timeout": timedelta(seconds=10),
        "batch_rows": 3,
    }
    return SnowflakeSource(SnowflakeSettings(**given | changes), Understanding(), lambda: now)
