"""`LAKEHELM__SECTION__KEY=value`: environment variables that win over the file.

Keys are matched without regard to case, and `-` or `.` in a name is written `_`, because a shell
allows neither in a variable: `LAKEHELM__ENGINES__TRINO_ADHOC__PORT=9000`.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lakehouse_core.config.document import parse_value
from lakehouse_core.config.problems import KeyPath, Problem, dotted
from lakehouse_core.config.shape import annotation_at, known_keys

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "LAKEHELM__"


@dataclass(slots=True)
class Overridden:
    """The tree after the overrides, and which variable set which key."""

    data: dict[str, Any]
    variables: dict[KeyPath, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def apply_overrides(data: dict[str, Any], environ: Mapping[str, str]) -> Overridden:
    """Apply every override variable to a copy of the tree, sections before the keys in them."""
    result = Overridden(copy.deepcopy(data))
    names = [name for name in environ if name.startswith(PREFIX)]
    for name in sorted(names, key=lambda n: (n.count("__"), n)):
        segments = name.removeprefix(PREFIX).split("__")
        if not all(segments):
            message = "malformed override; write LAKEHELM__SECTION__KEY"
            result.problems.append(Problem(place=name, key="", message=message))
            continue
        _apply(result, name, segments, environ[name])
    return result


def _apply(result: Overridden, name: str, segments: list[str], text: str) -> None:
    node: dict[str, Any] = result.data
    path: KeyPath = ()
    for index, segment in enumerate(segments):
        matches = _matches(segment, node, path, result.data)
        if len(matches) > 1:
            message = f"is ambiguous: {segment} may mean {' or '.join(sorted(matches))}"
            result.problems.append(Problem(place=name, key=dotted(path), message=message))
            return
        path = (*path, matches[0])
        if index == len(segments) - 1:
            break
        below = node.get(matches[0])
        if below is None:
            below = node[matches[0]] = {}
        if not isinstance(below, dict):
            message = "is a single value, so that no key in it can be overridden"
            result.problems.append(Problem(place=name, key=dotted(path), message=message))
            return
        node = below
    earlier = result.variables.get(path)
    if earlier is not None:
        message = f"set by two variables, {earlier} and {name}: keep one"
        result.problems.append(Problem(place=name, key=dotted(path), message=message))
        return
    try:
        node[str(path[-1])] = _typed(text)
    except ValueError:
        message = "the value of the variable is not YAML; quote it"
        result.problems.append(Problem(place=name, key=dotted(path), message=message))
        return
    result.variables[path] = name


def _matches(segment: str, node: dict[str, Any], path: KeyPath, data: Any) -> list[str]:
    wanted = _plain(segment)
    present = [key for key in node if _plain(key) == wanted]
    if present:
        return present
    known = known_keys(annotation_at(path, data), node)
    return [key for key in known if _plain(key) == wanted] or [segment.lower()]


def _plain(name: str) -> str:
    return name.lower().replace("-", "_").replace(".", "_")


def _typed(text: str) -> object:
    """The YAML value, except that a scalar stays text unless nothing is lost.

    The field's own type decides what a text means, so that a user named `007` or `on` keeps its
    name while a port still becomes a number.
    """
    value = parse_value(text)
    if isinstance(value, dict | list) or value is None:
        return value if text.strip() else text
    if isinstance(value, int) and not isinstance(value, bool) and str(value) == text:
        return value
    return value if isinstance(value, str) else text
