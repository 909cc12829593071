"""Names that we tell ourselves: a role learns of nothing that it may not read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import sqlglot

from lakehouse_core.config.governance import GovernanceConfig
from lakehouse_core.domain.errors import QueryFailedError
from lakehouse_core.gateway.auth import Identity
from lakehouse_core.gateway.postgres.catalog import PgCatalog
from lakehouse_core.gateway.trino.metadata import Metadata
from lakehouse_core.gateway.trino.session import read_session
from lakehouse_core.governance.guard import Guard
from lakehouse_core.governance.roles import policies_of
from lakehouse_core.governance.routed import RoutedGuard
from lakehouse_core.routing.decide import Ports
from lakehouse_core.routing.router import Router
from lakehouse_core.sql.session import Show, parse_session
from tests.unit.gateway.postgres.site import Names
from tests.unit.routing.conftest import Fleet, on_loop, plan_of, statement

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.routing.request import Sight

ROLES = {
    "analyst": {
        "tables": ["lake.sales.*", "lake.hr.people"],
        "denied_tables": ["lake.sales.margin"],
        "rules": [{"table": "lake.hr.people", "deny": ["salary"]}],
    },
    "chief": {"users": ["eve"]},
}
SESSION = read_session({"x-trino-catalog": "lake", "x-trino-schema": "hr"}, Identity("ana"))
# Everything that tells of tables, ours and what DuckDB brings along.
POSTGRES = [
    "SELECT relname FROM pg_class",
    "SELECT table_name FROM information_schema.tables",
    "SELECT table_name FROM information_schema.columns",
    "SELECT tablename FROM pg_catalog.pg_tables",
    "SELECT c.relname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid",
]


def sight_of(user: str, default: str | None = "analyst") -> Sight:
    governance = GovernanceConfig.model_validate({"default_role": default, "roles": ROLES})
    guard = RoutedGuard(Guard(policies_of(governance)), governance)
    plan = plan_of(clusterGroups={"g": {"members": ["trino"]}})
    return Router(plan, Ports(fleet=Fleet(), guard=guard)).sight(statement(user=user))


@pytest.fixture
def lake(tmp_path: Path) -> Names:
    tables = {
        "sales.orders": ("id", "amount"),
        "sales.margin": ("id", "margin"),
        "hr.people": ("id", "salary"),
        "hr.reviews": ("id", "review"),
        "secret.plans": ("id", "plan"),
    }
    return Names.of(tmp_path, tables)


@pytest.mark.parametrize("sql", POSTGRES)
@on_loop
async def test_postgres_clients_see_the_names_of_their_role(lake: Names, sql: str) -> None:
    catalog = PgCatalog({"lake": lake})  # type: ignore[dict-item] # what is used of it
    tree = sqlglot.parse_one(sql, dialect="postgres")
    for user, seen in (("ana", {"orders", "people"}), ("eve", {"orders", "margin", "people",
                       "reviews", "plans"}), ("ana", {"orders", "people"})):  # fmt: skip
        rows = await catalog.query(tree, "lake", user, sight_of(user))
        assert set(rows.column(0).to_pylist()) == seen


@on_loop
async def test_postgres_clients_see_no_denied_column_and_no_schema_of_denied_tables(
    lake: Names,
) -> None:
    catalog = PgCatalog({"lake": lake})  # type: ignore[dict-item] # what is used of it
    for sql, seen in (
        ("SELECT column_name FROM information_schema.columns WHERE table_schema = 'hr'", {"id"}),
        ("SELECT schema_name FROM information_schema.schemata", {"sales", "hr"}),
    ):
        tree = sqlglot.parse_one(sql, dialect="postgres")
        rows = await catalog.query(tree, "lake", "ana", sight_of("ana"))
        assert set(rows.column(0).to_pylist()) >= seen
        assert set(rows.column(0).to_pylist()).isdisjoint({"salary", "secret"})


@pytest.mark.parametrize(
    ("sql", "seen"),
    [
        ("SELECT table_name FROM information_schema.tables", {"orders", "people"}),
        ("SELECT table_name FROM system.jdbc.tables", {"orders", "people"}),
        ("SELECT column_name FROM information_schema.columns", {"id", "amount"}),
        ("SELECT schema_name FROM information_schema.schemata",
         {"sales", "hr", "information_schema"}),
    ],
)  # fmt: skip
@on_loop
async def test_trino_clients_see_the_names_of_their_role(
    lake: Names, sql: str, seen: set[str]
) -> None:
    names = Metadata({"lake": lake})  # type: ignore[dict-item] # what is used of it
    rows = await names.query(sql, SESSION, sight_of("ana"))
    assert set(rows.column(0).to_pylist()) == seen
    assert (await names.query(sql, SESSION, sight_of("ana", None))).num_rows <= 1
    assert (await names.query(sql, SESSION, sight_of("eve"))).num_rows > len(seen)


@on_loop
async def test_the_jdbc_driver_is_told_the_types(lake: Names) -> None:
    names = Metadata({"lake": lake})  # type: ignore[dict-item] # what is used of it
    sql = (
        "SELECT TYPE_NAME, DATA_TYPE, PRECISION, LITERAL_PREFIX, LITERAL_SUFFIX, CREATE_PARAMS, "
        "NULLABLE, CASE_SENSITIVE, SEARCHABLE, UNSIGNED_ATTRIBUTE, FIXED_PREC_SCALE, "
        "AUTO_INCREMENT, LOCAL_TYPE_NAME, MINIMUM_SCALE, MAXIMUM_SCALE, SQL_DATA_TYPE, "
        "SQL_DATETIME_SUB, NUM_PREC_RADIX FROM system.jdbc.types ORDER BY DATA_TYPE"
    )
    rows = (await names.query(sql, SESSION, sight_of("ana"))).to_pylist()
    precise = {row["type_name"]: (row["data_type"], row["precision"]) for row in rows}
    assert precise["bigint"] == (-5, 19)
    assert precise["varchar"] == (12, None)


@on_loop
async def test_how_a_table_is_created_tells_no_more(lake: Names) -> None:
    names = Metadata({"lake": lake})  # type: ignore[dict-item] # what is used of it
    shown = Show("create table", ("people",))
    for user, columns in (("ana", ["id"]), ("eve", ["id", "salary"])):
        (told,) = (await names.show(shown, SESSION, sight_of(user))).to_pylist()
        lines = told["Create Table"].splitlines()
        assert lines[0] == "CREATE TABLE lake.hr.people ("
        assert [one.split()[0] for one in lines[1 : lines.index(")")]] == columns
    for hidden in ("lake.hr.reviews", "lake.hr.nowhere", "lake.secret.plans"):
        asked = Show("create table", tuple(hidden.split(".")))
        with pytest.raises(QueryFailedError, match=f"'{hidden}' does not exist"):
            await names.show(asked, SESSION, sight_of("ana"))


@on_loop
async def test_the_session_is_what_the_client_has_set() -> None:
    names, columns = Metadata({}), ["Name", "Value", "Default", "Type", "Description"]
    session = read_session(
        {"x-trino-session": "query_max_run_time=5m,lake.x=a%2Cb"}, Identity("ana")
    )
    rows = await names.show(Show("session"), session, sight_of("ana"))
    assert rows.column_names == columns
    assert [(one["Name"], one["Value"]) for one in rows.to_pylist()] == [
        ("lake.x", "a,b"),
        ("query_max_run_time", "5m"),
    ]
    some = await names.show(Show("session", (), "query%"), session, sight_of("ana"))
    assert some.column("Name").to_pylist() == ["query_max_run_time"]
    none = await names.show(Show("session"), SESSION, sight_of("ana"))
    assert (none.num_rows, none.column_names) == (0, columns)


@on_loop
async def test_show_and_describe_tell_no_more(lake: Names) -> None:
    names = Metadata({"lake": lake})  # type: ignore[dict-item] # what is used of it
    shown = parse_session("SHOW TABLES FROM lake.hr", "trino")
    assert isinstance(shown, Show)
    rows = await names.show(shown, SESSION, sight_of("ana"))
    assert rows.column(0).to_pylist() == ["people"]
    described = parse_session("DESCRIBE lake.hr.reviews", "trino")
    assert isinstance(described, Show)
    with pytest.raises(QueryFailedError, match="does not exist"):
        await names.show(described, SESSION, sight_of("ana"))
