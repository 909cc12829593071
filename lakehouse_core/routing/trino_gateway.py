"""Rule files of trino-gateway, with its semantics: all that match fire, the last word stands.

Rules fire by ascending priority, those of one priority as they stand in the file. A rule without a
priority has 0: so its code does, whatever its documentation says (MVELRoutingRule.java). A rule
that fails on a request does not fire; the trace names it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from lakehouse_core.config.problems import InvalidConfigError, Problem
from lakehouse_core.domain.errors import ConfigError
from lakehouse_core.routing.mvel import RuleSyntaxError, compile_expression
from lakehouse_core.routing.mvel_values import GROUP_KEY, RuleFailedError
from lakehouse_core.routing.trino_objects import query_object, request_object, user_object

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakehouse_core.routing.mvel import Run
    from lakehouse_core.routing.request import Request, StatementFacts

_KEYS = ("name", "description", "priority", "condition", "actions")
_NAMES = frozenset({"request", "state", "trinoRequestUser", "trinoQueryProperties"})


@dataclass(frozen=True, slots=True)
class GatewayRule:
    """One rule; `line` is where it stands in its file."""

    name: str
    description: str
    priority: int
    line: int
    condition: str
    actions: tuple[str, ...]
    matches: Run
    acts: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The group the rules left behind, which of them fired and which failed, in words."""

    group: str | None
    detail: str
    has_failed: bool


@dataclass(frozen=True, slots=True)
class GatewayRules:
    """The rules of a file in the order they fire."""

    rules: tuple[GatewayRule, ...]

    def evaluate(self, request: Request, facts: StatementFacts) -> Verdict:
        """Let the rules fire."""
        result: dict[str, Any] = {}
        state: dict[str, Any] = {}
        given = {
            "request": request_object(request),
            "trinoRequestUser": user_object(request),
            "trinoQueryProperties": query_object(request, facts),
        }
        fired, failed = [], []
        for rule in self.rules:
            try:
                if rule.matches(given | {"state": state}) is not True:
                    continue
                fired.append(rule.name)
                for act in rule.acts:
                    act(given | {"state": state, "result": result})
            except RuleFailedError as error:
                failed.append(f"rule {rule.name!r} failed: {error}")
        group = result.get(GROUP_KEY)
        said = [f"fired: {', '.join(fired)}"] if fired else []
        return Verdict(
            group=None if group is None else str(group),
            detail="; ".join([*said, *failed]),
            has_failed=bool(failed),
        )


def read_rules(path: Path) -> GatewayRules:
    """Read a rule file.

    Raises:
        ConfigError: it cannot be read; or, as `InvalidConfigError`, everything that is wrong in it.
    """
    try:
        text = path.read_text(encoding="utf-8")
        documents = list(yaml.compose_all(text, yaml.SafeLoader))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigError(f"{path}:{line}: not YAML: {error.problem}") from error
    reader = _Reader(str(path))
    rules = [rule for node in documents if node is not None for rule in reader.rule(node)]
    if reader.problems:
        raise InvalidConfigError(str(path), reader.problems)
    return GatewayRules(tuple(sorted(rules, key=lambda rule: rule.priority)))


class _Reader:
    """Reads the rules of one file; what is wrong is noted with its line and key."""

    def __init__(self, file: str) -> None:
        self.problems: list[Problem] = []
        self._file = file

    def rule(self, node: yaml.Node) -> Iterator[GatewayRule]:
        before = len(self.problems)
        if not isinstance(node, yaml.MappingNode):
            self._problem(node, "", "a rule is a mapping with name, condition and actions")
            return
        parts: dict[str, yaml.Node] = {}
        for key, value in node.value:
            if key.value not in _KEYS:
                self._problem(key, str(key.value), f"unknown key (allowed: {', '.join(_KEYS)})")
            parts[str(key.value)] = value
        for key in ("name", "condition", "actions"):
            if key not in parts:
                self._problem(node, key, "is missing and has no default")
        if len(self.problems) > before:
            return
        name = self._text(parts["name"], "name")
        condition = self._text(parts["condition"], "condition")
        matches = self._compiled(parts["condition"], "condition", condition, _NAMES)
        actions = self._actions(parts["actions"])
        acts = [
            self._compiled(item, f"actions[{index}]", text, _NAMES | {"result"})
            for index, (item, text) in enumerate(actions)
        ]
        priority = self._priority(parts.get("priority"))
        if len(self.problems) == before:
            yield GatewayRule(
                name=name,
                description=self._text(parts.get("description"), "description"),
                priority=priority,
                line=node.start_mark.line + 1,
                condition=condition,
                actions=tuple(text for _, text in actions),
                matches=matches,
                acts=tuple(acts),
            )

    def _actions(self, node: yaml.Node) -> list[tuple[yaml.Node, str]]:
        if not isinstance(node, yaml.SequenceNode):
            self._problem(node, "actions", "expected a list of actions")
            return []
        return [
            (item, self._text(item, f"actions[{index}]")) for index, item in enumerate(node.value)
        ]

    def _compiled(self, node: yaml.Node, key: str, text: str, known: frozenset[str]) -> Run:
        try:
            return compile_expression(text, known)
        except RuleSyntaxError as error:
            self._problem(node, key, f"not understood: {error}")
            return lambda _: None

    def _priority(self, node: yaml.Node | None) -> int:
        if node is None:
            return 0
        try:
            return int(node.value)
        except (TypeError, ValueError):
            self._problem(node, "priority", "expected a whole number")
            return 0

    def _text(self, node: yaml.Node | None, key: str) -> str:
        if node is None:
            return ""
        if not isinstance(node, yaml.ScalarNode):
            self._problem(node, key, "expected text")
            return ""
        return str(node.value)

    def _problem(self, node: yaml.Node, key: str, message: str) -> None:
        place = f"{self._file}:{node.start_mark.line + 1}"
        self.problems.append(Problem(place=place, key=key, message=message))
