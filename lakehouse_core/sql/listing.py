"""Lists written as words: of names, and of the classes sqlglot gives its nodes."""

from __future__ import annotations

from sqlglot import exp


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


def node_types(names: str) -> frozenset[type[exp.Expr]]:
    """The classes of sqlglot with these names.

    Raises:
        AttributeError: sqlglot has no such class (any more).
    """
    return frozenset(getattr(exp, name) for name in names.split())
