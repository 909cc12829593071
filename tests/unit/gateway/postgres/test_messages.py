"""Several statements in one message: all of them are judged before the first one runs."""

from __future__ import annotations

import pytest

from lakehouse_core.config.governance import GovernanceConfig
from lakehouse_core.governance.guard import Guard
from lakehouse_core.governance.roles import policies_of
from lakehouse_core.governance.routed import RoutedGuard
from lakehouse_core.sql.guard import Relation
from tests.unit.gateway.postgres.site import PgSite, kinds, pg_site
from tests.unit.routing.conftest import on_loop

ROLES = {
    "writer": {"tables": ["lake.demo.*"], "statements": ["read", "write", "define"]},
    "reader": {"tables": ["lake.demo.*"]},
}
DELETE = "DELETE FROM lake.demo.t"
READ = "SELECT x FROM lake.demo.t"


def guard_of(role: str) -> RoutedGuard:
    governance = GovernanceConfig.model_validate({"default_role": role, "roles": ROLES})
    relations = {"lake.demo.t": Relation(("x",)), "lake.secret.s": Relation(("x",))}
    return RoutedGuard(Guard(policies_of(governance), relations), governance)


def sent(here: PgSite) -> list[str]:
    return [one.sql for one in here.engine.asked]


@pytest.mark.parametrize(
    ("first", "refused"),
    [
        (DELETE, "SELECT x FROM lake.secret.s"),
        (DELETE, "SELECT read_text('/etc/passwd') AS x"),
        (DELETE, "GRANT ALL ON lake.demo.t TO ana"),
        (DELETE, "SET ROLE admin"),
        (DELETE, "SHOW no_such_setting"),
        ("BEGIN; " + DELETE, "SELECT x FROM lake.secret.s"),
        ("SET search_path = secret", "SELECT x FROM s"),
    ],
)
@on_loop
async def test_nothing_is_done_of_a_message_that_is_refused_in_part(
    first: str, refused: str
) -> None:
    async with pg_site(guard=guard_of("writer")) as (here, client):
        before = await client.query("SHOW search_path")
        answers = await client.query(f"{first}; {refused}")
        assert kinds(answers) == b"EZ"
        assert answers[-1][1] == b"I"  # no transaction was begun
        assert sent(here) == []
        assert await client.query("SHOW search_path") == before
        assert kinds(await client.query(READ)) == b"TDCZ"


@on_loop
async def test_a_refusal_is_recorded_once() -> None:
    async with pg_site(guard=guard_of("reader")) as (here, client):
        assert kinds(await client.query(f"{READ}; {DELETE}; {DELETE}")) == b"EZ"
        assert [one.request.sql for one in here.notes.flights] == [DELETE]


@on_loop
async def test_statements_are_judged_as_they_will_find_the_session() -> None:
    async with pg_site(guard=guard_of("writer")) as (here, client):
        answers = await client.query("SET search_path = demo; SELECT x FROM t")
        assert kinds(answers) == b"CTDCZ"
        assert len(sent(here)) == 1
        assert kinds(await client.query("BEGIN; SELECT nope(1)")) == b"EZ"
        assert kinds(await client.query("BEGIN")) == b"CZ"
        assert kinds(await client.query("SELECT nope(1)")) == b"EZ"
        assert kinds(await client.query(f"SHOW ssl; {READ}")) == b"EZ"
        assert kinds(await client.query(f"ROLLBACK; {READ}")) == b"CTDCZ"


@on_loop
async def test_what_a_statement_makes_may_be_used_by_the_next() -> None:
    async with pg_site(guard=guard_of("writer")) as (here, client):
        made = "CREATE TABLE lake.demo.u AS SELECT 1 AS x"
        await client.query("; ".join([made, "SELECT x FROM lake.demo.u"]))
        assert sent(here)[:1] == [made]
