"""Hooks of both forms: on the tree before it is written, on the text after.

    def transform(ast, src, dst): ...        # changes the tree in place, or returns another
    def transform(sql, src, dst): return sql # text in, text out; also when both dialects are equal

The name of the first parameter tells them apart.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sqlglot import exp

from lakehouse_core.domain.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

_ON_TREE = frozenset({"ast", "tree", "expression", "node"})
_ON_TEXT = frozenset({"sql", "text", "query"})


class HookError(Exception):
    """Raised when a hook fails or gives something else than it should; no text goes out then."""


@dataclass(frozen=True, slots=True)
class Hook:
    """A function of somebody's own.

    Attributes:
        name: for messages.
        form: what it takes and gives.
        call: the function.
    """

    name: str
    form: Literal["tree", "text"]
    call: Callable[[Any, str, str], Any]


def hook(function: Callable[[Any, str, str], Any], name: str | None = None) -> Hook:
    """A hook from a function.

    Raises:
        ConfigError: its first parameter is none of the known names.
    """
    shown = name or str(getattr(function, "__name__", "transform"))
    parameters = list(inspect.signature(function).parameters)
    first = parameters[0] if parameters else ""
    if len(parameters) == 3 and first in _ON_TREE:
        return Hook(shown, "tree", function)
    if len(parameters) == 3 and first in _ON_TEXT:
        return Hook(shown, "text", function)
    raise ConfigError(
        f"The translation hook {shown} takes ({', '.join(parameters)}); write transform(ast, src, "
        "dst) or transform(sql, src, dst) -> str"
    )


def on_tree(hooks: tuple[Hook, ...], tree: exp.Expr, source: str, target: str) -> exp.Expr:
    """Run the hooks that change trees.

    Raises:
        HookError: one failed.
    """
    for one in hooks:
        if one.form == "tree":
            found = _called(one, tree, source, target)
            if found is not None and not isinstance(found, exp.Expr):
                raise HookError(f"the hook {one.name} gave a {type(found).__name__}, not a tree")
            tree = tree if found is None else found
    return tree


def on_text(hooks: tuple[Hook, ...], sql: str, source: str, target: str) -> str:
    """Run the hooks that change texts.

    Raises:
        HookError: one failed.
    """
    for one in hooks:
        if one.form == "text":
            found = _called(one, sql, source, target)
            if not isinstance(found, str):
                raise HookError(f"the hook {one.name} gave a {type(found).__name__}, not a text")
            sql = found
    return sql


def _called(one: Hook, value: Any, source: str, target: str) -> Any:
    try:
        return one.call(value, source, target)
    except Exception as error:
        raise HookError(f"the hook {one.name} failed with {type(error).__name__}") from error
