"""Which table a column belongs to, by the prefix its name carries (`l_orderkey` of `lineitem`).

TPC-style schemas give each table a prefix made from its name. Without a schema this is the only
trace of a column's owner in `FROM customer, orders WHERE c_custkey = o_custkey`. It is believed
only when it explains the whole statement: every column has a prefix, every prefix abbreviates a
table of the statement, and the best one-to-one assignment of prefixes to tables is unique and
agrees with every column whose owner the text proves. One column that does not fit, and the
convention is dropped for the statement. A prefix that is the table's own name or its singular
(`user_id` for `users`) does not count: foreign keys look like that, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Table = tuple[str, ...]

_MAX_PREFIXES = 24
_WORST = 3


def owners(
    names: Iterable[str], tables: Iterable[Table], proven: Mapping[str, set[Table]]
) -> dict[str, Table]:
    """Prefix → table, when the convention explains every name; else nothing.

    Args:
        names: every column of a base table that the statement names.
        tables: the base tables of the statement.
        proven: column name → tables that certainly have it.
    """
    by_prefix: dict[str, set[str]] = {}
    for name in names:
        prefix = prefix_of(name)
        if not prefix:
            return {}
        by_prefix.setdefault(prefix, set()).add(name)
    candidates = list(tables)
    if not by_prefix or len(by_prefix) > min(len(candidates), _MAX_PREFIXES):
        return {}
    choices: dict[str, dict[Table, int]] = {}
    for prefix, columns in by_prefix.items():
        ranks = _choices(prefix, columns, candidates, proven)
        if not ranks:
            return {}
        choices[prefix] = ranks
    return _unique_assignment(choices)


def prefix_of(name: str) -> str:
    """What stands before the first underscore; "" when that is nothing or everything."""
    prefix, underscore, rest = name.partition("_")
    return prefix.lower() if underscore and rest else ""


def _choices(
    prefix: str, columns: set[str], tables: list[Table], proven: Mapping[str, set[Table]]
) -> dict[Table, int]:
    """The tables a prefix can stand for, each with how far-fetched that is."""
    certain = {table for column in columns for table in proven.get(column, ())}
    if len(certain) > 1:
        return {}
    if certain:
        return dict.fromkeys(certain, 0)
    ranks: dict[Table, int] = {}
    for table in tables:
        name = table[-1].lower()
        if any(column.lower().startswith(f"{name}_") for column in columns):
            ranks[table] = 0  # web_site_sk of web_site
            continue
        rank = _rank(prefix, name)
        if rank < _WORST:
            ranks[table] = rank
    if 0 in ranks.values() and any(
        column.lower().startswith(f"{table[-1].lower()}_") for table in ranks for column in columns
    ):
        return {
            table: 0
            for table in ranks
            if any(column.lower().startswith(f"{table[-1].lower()}_") for column in columns)
        }
    return ranks


def _rank(prefix: str, table: str) -> int:
    """0 for the initials, 1 for the beginning, 2 for letters in order, 3 for no abbreviation."""
    if prefix in (table, table.removesuffix("s"), table.removesuffix("es")):
        return _WORST
    words = [word for word in table.split("_") if word]
    if prefix == "".join(word[0] for word in words):
        return 0
    if table.startswith(prefix):
        return 1
    letters = iter(table)
    is_subsequence = prefix[0] == table[0] and all(letter in letters for letter in prefix)
    return 2 if is_subsequence and len(prefix) > 1 else _WORST


def _unique_assignment(choices: dict[str, dict[Table, int]]) -> dict[str, Table]:
    """The cheapest one-to-one assignment of prefixes to tables, if only one is cheapest."""
    order = sorted(choices, key=lambda prefix: (len(choices[prefix]), prefix))
    best_cost, best, is_unique = len(order) * _WORST + 1, {}, False
    stack: list[tuple[int, int, dict[str, Table]]] = [(0, 0, {})]
    steps = 0
    while stack:
        index, cost, assigned = stack.pop()
        steps += 1
        if steps > 10_000:
            return {}
        if cost > best_cost:
            continue
        if index == len(order):
            is_unique = cost < best_cost
            best_cost, best = cost, assigned
            continue
        prefix = order[index]
        taken = set(assigned.values())
        for table, rank in choices[prefix].items():
            if table not in taken:
                stack.append((index + 1, cost + rank, {**assigned, prefix: table}))
    return best if is_unique else {}
