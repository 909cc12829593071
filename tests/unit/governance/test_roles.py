"""Roles from YAML: who has which, what they mean, and mistakes found when they are loaded."""

from __future__ import annotations

import pytest

from lakehouse_core.config.governance import GovernanceConfig
from lakehouse_core.domain.errors import ConfigError
from lakehouse_core.governance.guard import Guard
from lakehouse_core.governance.roles import Identity, policies_of, role_of
from lakehouse_core.sql.guard import Asker, Relation, Rule

GOVERNANCE = GovernanceConfig.model_validate(
    {
        "default_role": "visitor",
        "roles": {
            "engineer": {"users": ["eve"], "groups": ["platform"], "statements": ["read", "write"]},
            "finance": {
                "groups": ["finance"],
                "tables": ["Lake.*"],
                "max_bytes": "1MiB",
                "rules": [
                    {
                        "table": "Lake.Demo.Customers",
                        "masks": {"Email": "hash"},
                        "row_filter": "owner = :user",
                        "require_filter": ["Day"],
                    }
                ],
            },
            "visitor": {"tables": ["lake.public.*"]},
        },
    }
)


@pytest.mark.parametrize(
    ("identity", "wanted", "role"),
    [
        (Identity("eve"), None, "engineer"),
        (Identity("bob", ("finance",)), None, "finance"),
        (Identity("bob", ("finance", "platform")), None, "engineer"),
        (Identity("bob", ("finance", "platform")), "finance", "finance"),
        (Identity("bob"), None, "visitor"),
        (Identity("bob"), "engineer", None),
        (Identity(None), None, "visitor"),
        (Identity("eve"), "visitor", "visitor"),
        (Identity("eve"), "nonsense", None),
        (Identity("bob", role="engineer"), None, "engineer"),
        (Identity("bob", role="engineer"), "engineer", "engineer"),
        (Identity("bob", role="finance"), "engineer", None),
    ],
)
def test_user_has_the_first_role_that_names_them(
    identity: Identity, wanted: str | None, role: str | None
) -> None:
    assert role_of(identity, GOVERNANCE, wanted) == role


def test_without_a_default_role_strangers_have_none() -> None:
    closed = GOVERNANCE.model_copy(update={"default_role": None})
    assert role_of(Identity("bob"), closed) is None
    assert Guard(policies_of(closed)).check("SELECT 1", "trino", None).rule == Rule.UNKNOWN_ROLE


def test_names_of_the_configuration_are_compared_without_case() -> None:
    guard = Guard(
        policies_of(GOVERNANCE), {"lake.demo.customers": Relation(("email", "owner", "day"))}
    )
    verdict = guard.check(
        "SELECT email FROM LAKE.demo.Customers WHERE day = 1",
        "duckdb",
        "finance",
        asker=Asker(user="bob"),
        estimated_bytes=1,
    )
    assert verdict.allowed, verdict.reason
    assert "SHA256" in verdict.sql
    assert "= 'bob'" in verdict.sql


@pytest.mark.parametrize("role", [None, "", "nobody", "Engineer"])
def test_unknown_role_may_do_nothing(role: str | None) -> None:
    verdict = Guard(policies_of(GOVERNANCE)).check("SELECT 1", "trino", role)
    assert (verdict.allowed, verdict.rule) == (False, Rule.UNKNOWN_ROLE)


def test_reload_forgets_what_was_decided_before() -> None:
    guard = Guard(policies_of(GOVERNANCE))
    sql = "SELECT a FROM lake.public.t"
    assert guard.check(sql, "trino", "visitor").allowed
    guard.reload(relations={"lake.public.u": Relation(("a",))})
    assert guard.check(sql, "trino", "visitor").rule == Rule.UNKNOWN_TABLE
    guard.reload(policies={})
    assert guard.check(sql, "trino", "visitor").rule == Rule.UNKNOWN_ROLE


@pytest.mark.parametrize(
    ("rule", "key"),
    [
        ({"masks": {"email": "substr(email"}}, "masks.email"),
        ({"masks": {"email": "(SELECT 1)"}}, "masks.email"),
        ({"row_filter": "owner = :me"}, "row_filter"),
        ({"row_filter": "DROP TABLE x"}, "row_filter"),
    ],
)
def test_mask_that_is_none_is_a_mistake_with_its_key(rule: dict[str, object], key: str) -> None:
    config = GovernanceConfig.model_validate(
        {"default_role": "r", "roles": {"r": {"rules": [{"table": "lake.demo.c", **rule}]}}}
    )
    with pytest.raises(ConfigError, match=rf"governance\.roles\.r\.rules\[0\]\.{key}"):
        policies_of(config)


def test_default_role_that_does_not_exist_is_a_mistake() -> None:
    with pytest.raises(ConfigError, match="default_role"):
        policies_of(GovernanceConfig.model_validate({"default_role": "x", "roles": {}}))


def test_roles_that_come_with_the_product_are_there() -> None:
    policies = policies_of(GovernanceConfig())
    assert set(policies) == {"analyst", "engineer"}
    assert policies["analyst"].statements == {"read"}
