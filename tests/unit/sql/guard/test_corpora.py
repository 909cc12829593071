"""Both numbers of the guards: hostile statements refused, harmless ones passed."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from sqlglot.errors import SqlglotError

from lakehouse_core.sql.guard import Gate, Policy
from tests.unit.sql.guard.corpora import DIALECTS, Statement, harmless, hostile, written
from tests.unit.sql.mutation import mutate

if TYPE_CHECKING:
    from collections.abc import Callable

ANALYST = Policy(role="analyst")


def verdicts(statements: tuple[Statement, ...]) -> list[tuple[Statement, bool, str]]:
    gate = Gate(ANALYST)
    found = [(one, gate.check(one.sql, one.dialect)) for one in statements]
    return [(one, verdict.allowed, f"{verdict.rule}: {verdict.reason}") for one, verdict in found]


@pytest.mark.slow
def test_every_hostile_statement_is_refused(tell: Callable[[str], None]) -> None:
    found = verdicts(hostile())
    passed = [(one.dialect, one.sql[:120], one.why) for one, allowed, _ in found if allowed]
    tell(f"hostile statements refused: {len(found) - len(passed)} of {len(found)}")
    assert passed == []
    assert len(found) >= 300
    assert {one.dialect for one in hostile()} >= {*DIALECTS, "duckdb", "athena"}


@pytest.mark.slow
def test_hardly_a_harmless_statement_is_refused(tell: Callable[[str], None]) -> None:
    found = verdicts(harmless())
    refused = [(one.dialect, one.sql[:120], why) for one, allowed, why in found if not allowed]
    share = 1 - len(refused) / len(found)
    tell(f"harmless statements passed: {share:.2%} of {len(found)}")
    assert len(found) >= 1_000
    assert share >= 0.99, refused[:20]


@pytest.mark.slow
def test_harmless_corpus_is_of_every_kind() -> None:
    kinds = Counter(one.why for one in harmless())
    assert kinds["tpch"] == 22 * 5
    assert kinds["tpcds"] == 99 * 5
    assert kinds["written"] >= 150


@pytest.mark.slow
def test_what_was_decided_before_changes_no_verdict() -> None:
    gate = Gate(ANALYST)
    benign = harmless()[::3]
    for one in (*benign, *hostile()):
        gate.check(one.sql, one.dialect)
    assert all(gate.check(one.sql, one.dialect).allowed for one in benign)
    assert not any(gate.check(one.sql, one.dialect).allowed for one in hostile())


@pytest.mark.slow
def test_layout_case_and_comments_let_nothing_hostile_through() -> None:
    gate, choice = Gate(ANALYST), random.Random(7)  # noqa: S311 repeatable
    changed = 0
    for one in hostile():
        if one.why == "characters nobody sees":  # a change of layout takes them out
            continue
        try:
            text = mutate(one.sql, one.dialect, choice, literals=False)
        except SqlglotError:
            continue
        assert not gate.check(text, one.dialect).allowed, (one.dialect, text)
        changed += text != one.sql
    assert changed > 800


@pytest.mark.slow
def test_a_part_of_both_corpora_is_judged_rightly() -> None:
    assert not [one for one, allowed, _ in verdicts(hostile()[::4]) if allowed]
    assert not [(one, why) for one, allowed, why in verdicts(written()) if not allowed]


def test_what_is_refused_says_why_in_words() -> None:
    for one, _, why in verdicts(hostile()[::7]):
        rule, _, reason = why.partition(": ")
        assert rule != "None", one
        assert len(reason) > 10, one
