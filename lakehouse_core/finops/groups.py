"""Workload groups: ordered rules become one CASE expression that DuckDB applies to many rows.

The rules are applied when costs are read, not when they are written: a changed rule regroups the
whole history at once, and what a change would move can be told before it is made. Nothing is lost:
what no rule matches goes to the default group.

    rules = group_rules(config.workload_groups, config.finops)
    store.read(f"SELECT {rules.number_sql} FROM …", **rules.params)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lakehouse_core.config.finops import FinOpsConfig, GroupCondition, WorkloadGroup

# Columns that the rows must have, by condition. A list is matched as lines of one text.
_SUBJECTS = {
    "user": "user_name",
    "tag": "array_to_string(tags, chr(10))",
    "source": "source",
    "template": "template_id",
    "statement": "statement_kind",
    "engine": "engine_id",
    "group": "workload_group",
    "table": "table_name",
}
_TOUCHES = """template_id IN (
      SELECT template_id FROM template_table WHERE {test}
      UNION SELECT template_id FROM column_usage WHERE {test})"""


@dataclass(frozen=True, slots=True)
class Place:
    """Where spend belongs."""

    workload: str
    team: str | None
    cost_center: str | None


@dataclass(frozen=True, slots=True)
class GroupRules:
    """A rule set in SQL.

    Attributes:
        number_sql: the number of the first rule that matches a row, from 1 on; the default group's
            is one more than the last rule's. It is of rows of `cost_label`.
        params: what `number_sql` and `column_sql` are bound with.
        places: where each number leads.
        prefix: what the names of the parameters begin with.
    """

    number_sql: str
    params: dict[str, Any]
    places: tuple[Place, ...]
    prefix: str = "group"

    def column_sql(self, number: str) -> dict[str, str]:
        """Expressions of workload, team and cost center for an expression of the number."""
        return {
            "workload": f"list_extract(${self.prefix}_names::VARCHAR[], {number})",
            "team": f"list_extract(${self.prefix}_teams::VARCHAR[], {number})",
            "cost_center": f"list_extract(${self.prefix}_centers::VARCHAR[], {number})",
        }


def group_rules(
    groups: Sequence[WorkloadGroup], settings: FinOpsConfig, prefix: str = "group"
) -> GroupRules:
    """The rules of a configuration; two sets in one statement differ in their prefix."""
    cases = []
    params: dict[str, Any] = {}
    for number, group in enumerate(groups, 1):
        tests = ["true"]
        if group.when != "always":
            condition = group.when
            for name, globs in _given(condition):
                parameter = f"{prefix}_{number}_{name}"
                tests.append(_test(name, parameter))
                params[parameter] = _regex(globs)
                if name == "group":
                    members = (g for glob in globs for g in _members(glob, settings.user_groups))
                    params[f"{parameter}_users"] = _regex(members)
        cases.append(f"WHEN {' AND '.join(tests)} THEN {number}")
    places = (
        *(Place(one.name, one.team, one.cost_center) for one in groups),
        Place(settings.default_group, None, None),
    )
    params[f"{prefix}_names"] = [place.workload for place in places]
    params[f"{prefix}_teams"] = [place.team for place in places]
    params[f"{prefix}_centers"] = [place.cost_center for place in places]
    otherwise = len(places)
    number_sql = f"CASE {' '.join(cases)} ELSE {otherwise} END" if cases else str(otherwise)
    return GroupRules(number_sql, params, places, prefix)


def _given(condition: GroupCondition) -> Iterable[tuple[str, tuple[str, ...]]]:
    for name in type(condition).model_fields:
        globs = getattr(condition, name)
        if globs is not None:
            yield name, globs


def _test(name: str, parameter: str) -> str:
    test = _matches(_SUBJECTS[name], parameter)
    if name == "table":
        return _TOUCHES.format(test=test)
    if name == "group":
        return f"({test} OR {_matches('user_name', f'{parameter}_users')})"
    return test


def _matches(subject: str, parameter: str) -> str:
    # What was not told matches nothing, not even `*`. DuckDB lowers both sides by one rule.
    told = f"nullif({subject}, '')"
    return f"coalesce(regexp_full_match(lower({told}), lower(${parameter}::VARCHAR)), false)"


def _regex(globs: Iterable[str]) -> str:
    """One expression for several globs, of any line of a text. Without globs: nothing."""
    parts = [
        "".join({"*": r"[^\n]*", "?": r"[^\n]"}.get(one) or re.escape(one) for one in glob)
        for glob in globs
    ]
    lines = r"(?:[^\n]*\n)*"
    return rf"{lines}(?:{'|'.join(parts)})(?:\n[^\n]*)*" if parts else "[^\\s\\S]"


def _members(glob: str, user_groups: dict[str, tuple[str, ...]]) -> Iterable[str]:
    wanted = re.compile(_regex([glob.lower()]))
    matching = (users for name, users in user_groups.items() if wanted.fullmatch(name))
    return (user for users in matching for user in users)
