from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from lakehouse_core import duck
from lakehouse_core.config.finops import FinOpsConfig, GroupCondition, WorkloadGroup
from lakehouse_core.finops.groups import group_rules
from lakehouse_core.store.literals import bind

TABLES = {"t1": ("lake.sales.orders", "lake.sales.lines"), "t2": ("lake.hr.people",), "t3": ()}
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("user_name", "source", "template_id")),
        ("tags", pa.list_(pa.string())),
        *((name, pa.string()) for name in ("statement_kind", "engine_id", "workload_group")),
    ]
)


def query(**values: Any) -> dict[str, Any]:
    return dict.fromkeys(SCHEMA.names) | values


def places(
    queries: list[dict[str, Any]], groups: list[WorkloadGroup], config: FinOpsConfig | None = None
) -> list[str]:
    """The group of each query, as DuckDB finds it."""
    rules = group_rules(groups, config or FinOpsConfig())
    rows = pa.Table.from_pylist(queries, schema=SCHEMA)
    links = pa.table(
        {
            "template_id": [one for one, tables in TABLES.items() for _ in tables],
            "table_name": [table for tables in TABLES.values() for table in tables],
        }
    )
    name = rules.column_sql("number")["workload"]
    sql = f"SELECT {name} AS workload FROM (SELECT {rules.number_sql} AS number FROM rows)"  # noqa: S608 ours
    with duck.connect() as connection:
        connection.register("rows", rows)
        connection.register("template_table", links)
        connection.register("column_usage", links)
        found = connection.execute(bind(sql, rules.params)).fetchall()
    return [one for (one,) in found]


def group(name: str, **when: Any) -> WorkloadGroup:
    return WorkloadGroup(name=name, when=GroupCondition(**when) if when else "always")


def test_the_first_rule_that_matches_wins() -> None:
    rules = [
        group("finance", user="fin_*"),
        group("all-of-them", user="*"),
        group("never", user="*"),
    ]
    assert places([query(user_name="FIN_ana"), query(user_name="bo")], rules) == [
        "finance",
        "all-of-them",
    ]


def test_what_no_rule_matches_goes_to_the_default_group() -> None:
    config = FinOpsConfig(default_group="nobody")
    rules = [group("finance", user="fin_*")]
    assert places([query(user_name="bo"), query()], rules, config) == ["nobody", "nobody"]
    assert places([query()], [], config) == ["nobody"]


@pytest.mark.parametrize(
    ("when", "matching", "other"),
    [
        ({"user": "an?"}, {"user_name": "ana"}, {"user_name": "anna"}),
        ({"tag": "team:*"}, {"tags": ["x", "team:etl"]}, {"tags": ["xteam:etl"]}),
        ({"source": ["bi", "tableau*"]}, {"source": "Tableau 24"}, {"source": "bi2"}),
        ({"template": "t1"}, {"template_id": "t1"}, {"template_id": "t11"}),
        ({"statement": "insert"}, {"statement_kind": "insert"}, {"statement_kind": "select"}),
        ({"table": "lake.sales.*"}, {"template_id": "t1"}, {"template_id": "t2"}),
        ({"engine": "trino"}, {"engine_id": "trino"}, {"engine_id": "spark"}),
        (
            {"group": "root.etl*"},
            {"workload_group": "root.etl.nightly"},
            {"workload_group": "root"},
        ),
        ({"user": "a.b+(c)[d]"}, {"user_name": "a.b+(c)[d]"}, {"user_name": "axb+(c)[d]"}),
    ],
)
def test_each_condition_looks_at_its_own_column(
    when: dict[str, Any], matching: dict[str, Any], other: dict[str, Any]
) -> None:
    assert places([query(**matching), query(**other), query()], [group("hit", **when)]) == [
        "hit",
        "other",
        "other",
    ]


def test_conditions_of_one_rule_must_all_hold() -> None:
    rules = [group("hit", user="ana", tag="etl")]
    seen = places(
        [query(user_name="ana", tags=["etl"]), query(user_name="ana"), query(tags=["etl"])], rules
    )
    assert seen == ["hit", "other", "other"]


def test_a_group_of_users_is_matched_by_its_members() -> None:
    config = FinOpsConfig(user_groups={"analysts": ("ana", "bo*"), "writers": ("etl",)})
    rules = [group("reading", group="analysts")]
    names = [query(user_name=name) for name in ("ana", "bob", "etl")]
    assert places(names, rules, config) == ["reading", "reading", "other"]


def test_teams_and_cost_centers_follow_the_group() -> None:
    one = WorkloadGroup(name="etl", when="always", team="Platform", cost_center="4711")
    rules = group_rules([one], FinOpsConfig())
    assert [(p.workload, p.team, p.cost_center) for p in rules.places] == [
        ("etl", "Platform", "4711"),
        ("other", None, None),
    ]


@pytest.mark.parametrize("name", ["idle", "unallocated", "storage"])
def test_names_of_rows_that_are_no_queries_are_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="row of its own"):
        WorkloadGroup(name=name, when="always")
    with pytest.raises(ValidationError, match="row of its own"):
        FinOpsConfig(default_group=name)


def test_a_condition_about_nothing_is_refused() -> None:
    with pytest.raises(ValidationError, match="always"):
        GroupCondition()


_names = st.text("aAbB_.*?-", min_size=1, max_size=4).filter(str.strip)
_users = st.none() | st.text("aAbB_.-", min_size=1, max_size=5)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(_names, min_size=1, max_size=3), max_size=4), st.lists(_users, min_size=1))
def test_sql_agrees_with_globs_and_loses_nothing(globs: list[list[str]], users: list[str]) -> None:
    rules = [group(f"g{n}", user=tuple(one)) for n, one in enumerate(globs)]

    def expected(user: str | None) -> str:
        for n, one in enumerate(globs):
            if user and any(fnmatchcase(user.lower(), glob.lower()) for glob in one):
                return f"g{n}"
        return "other"

    seen = places([query(user_name=user) for user in users], rules)
    assert seen == [expected(user) for user in users]
