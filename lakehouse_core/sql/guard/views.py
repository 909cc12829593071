"""Views: what a role does not see of a table it does not see through a view either.

The engine knows nothing of our masks when it opens a view. So the view's text is judged like a
statement of the reader; when something in it must be hidden, the changed text takes the place of
the view's name, else the name stays. A view that cannot be judged is refused.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lakehouse_core.sql.dialect import UnknownDialectError, dialect_named
from lakehouse_core.sql.guard.edits import apply
from lakehouse_core.sql.guard.records import RefusedError, Rule
from lakehouse_core.sql.guard.walk import Walk
from lakehouse_core.sql.translate.records import Outcome
from lakehouse_core.sql.translate.translator import translate

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakehouse_core.sql.guard.statement import Judged, Reading

MAX_DEPTH = 8


def inside_view(
    parts: tuple[str, ...],
    reading: Reading,
    depth: int,
    read: Callable[[str, Reading, Walk], Judged],
) -> str | None:
    """The text that takes the place of a view; None when the name may stay.

    Raises:
        RefusedError: the view reads what the role may not read, or cannot be judged.
    """
    relation = reading.tables.relation(parts)
    if relation is None or relation.view_sql is None or not reading.policy.hides_anything:
        return None
    name = ".".join(parts)
    if depth >= MAX_DEPTH:
        raise RefusedError(Rule.MASK, f"the view {name} reads views too deep to be judged")
    try:
        dialect = dialect_named(relation.view_dialect)
    except UnknownDialectError as error:
        raise RefusedError(Rule.MASK, f"nobody knows the dialect of the view {name}") from error
    catalog, *namespace = parts[:-1] or (None,)
    inner = replace(reading, dialect=dialect, catalog=catalog, namespace=tuple(namespace))
    # What the view's author did is not the reader's doing; only what it shows is.
    policy = reading.policy.unrestricted()
    if not read(relation.view_sql, inner, Walk(dialect, policy)).edits:
        return None
    found = translate(relation.view_sql, dialect.name, reading.dialect.name)
    if found.outcome not in (Outcome.IDENTICAL, Outcome.TRANSLATED):
        raise RefusedError(
            Rule.MASK,
            f"the view {name} shows what the role {reading.policy.role} does not see, and cannot "
            f"be said in {reading.dialect.name} for sure: {found.reason}",
        )
    there = replace(inner, dialect=reading.dialect)
    judged = read(found.sql, there, Walk(reading.dialect, policy))
    return apply(found.sql, judged.edits)[0]
