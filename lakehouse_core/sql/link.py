"""Link references to the SELECT items they stand for, and give aliases their canonical names.

Both follow from the text alone, so two texts that differ only in alias names come out equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot import exp

    from lakehouse_core.sql.dialect import SqlDialect
    from lakehouse_core.sql.scope import AliasKind, Bound, Output, Ref, Scope

_LETTERS: dict[AliasKind, str] = {"table": "t", "column": "c", "cte": "w", "window": "n"}


def link(bound: Bound, dialect: SqlDialect) -> None:
    """Set the output of every reference that stands for one."""
    for ref in bound.refs:
        if ref.source is not None:
            ref.output = ref.source.find(ref.name)
        elif ref.only is not None:
            _link_to_sources(ref)
        elif not _link_to_alias_first(ref):
            _link_in_scopes(ref, has_lateral=dialect.has_lateral_aliases)


def canonical_names(bound: Bound) -> dict[int, str]:
    """Position of an identifier in the text → the canonical name of the alias it is."""
    names: dict[int, str] = {}
    if not bound.aliases:
        return names
    counts = dict.fromkeys(_LETTERS.values(), 0)
    definitions = sorted(
        {start_of(node): kind for node, kind in bound.aliases if start_of(node) >= 0}.items()
    )
    for start, kind in definitions:
        letter = _LETTERS[kind]
        counts[letter] += 1
        names[start] = f"{letter}{counts[letter]}"
    for node, definition in bound.renames:
        _copy(names, node, definition)
    known: dict[int, exp.Expr | None] = {}
    for ref in bound.refs:
        if ref.output is not None and ref.node is not None:
            _copy(names, ref.node, _alias_of(ref.output, known))
    return names


def start_of(node: exp.Expr | None) -> int:
    """Where an identifier begins in the text; -1 when it is not from the text."""
    meta = node._meta if node is not None else None
    return meta.get("start", -1) if meta else -1


def _copy(names: dict[int, str], node: exp.Expr, definition: exp.Expr | None) -> None:
    name = names.get(start_of(definition))
    start = start_of(node)
    if name is not None and start >= 0:
        names[start] = name


def _alias_of(output: Output, known: dict[int, exp.Expr | None]) -> exp.Expr | None:
    """The alias an output is known by, through items that only pass it on."""
    passed: list[int] = []
    ident = None
    while True:
        ident = output.ident or known.get(id(output))
        passed.append(id(output))
        if ident is not None or id(output) in known:
            break
        known[id(output)] = None  # met again, it goes round in a circle
        if output.parts:
            output = output.parts[0]
        elif len(output.refs) == 1 and output.refs[0].output is not None:
            output = output.refs[0].output
        else:
            break
    known.update(dict.fromkeys(passed, ident))
    return ident


def _link_to_sources(ref: Ref) -> None:
    for source in ref.only or ():
        output = source.find(ref.name)
        if output is not None:
            ref.source, ref.output = source, output
            return


def _link_to_alias_first(ref: Ref) -> bool:
    """ORDER BY sees what the SELECT list gives before what it reads."""
    if ref.clause != "order" or ref.is_inner:
        return False
    output = ref.scope.relation.names.get(ref.name)
    if output is not None and ref not in output.refs:
        ref.output = output
        return True
    return False


def _link_in_scopes(ref: Ref, *, has_lateral: bool) -> None:
    scope: Scope | None = ref.scope
    name = ref.name
    while scope is not None:
        is_open = False
        for source in scope.sources:
            relation = source.relation
            if relation is None:
                is_open = True
                continue
            output = relation.names.get(name)
            if output is not None:
                ref.source, ref.output = source, output
                return
            is_open = is_open or source.is_open
        if scope is ref.scope:
            ref.output = select_alias(ref, has_lateral=has_lateral)
            if ref.output is not None:
                return
        if is_open:
            return  # it is a column of one of them, for all the text says
        scope = scope.parent


def select_alias(ref: Ref, *, has_lateral: bool) -> Output | None:
    """The alias of the SELECT list that a reference may mean in its clause."""
    output = ref.scope.relation.names.get(ref.name)
    if output is None or output.ident is None:
        return None
    if ref.clause == "select":
        if not has_lateral or output.item >= ref.item or ref.item < 0:
            return None
    elif ref.clause not in ("group", "having"):
        return None
    # `upper(x) AS x … GROUP BY x` means the column: the name is taken by a column that is read.
    if any(r.name == ref.name and not r.is_qualified for r in output.refs):
        return None
    return output
