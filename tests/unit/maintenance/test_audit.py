"""The audit chain: any change of a stored row is found, and the first bad row named."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_core.domain.errors import MaintenanceError
from lakehouse_core.maintenance.audit import (
    EMPTY,
    Head,
    Note,
    chain,
    entry_hash,
    head_file,
    read_head,
    verify_chain,
    write_head,
)
from tests.factories import NOW

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.domain.maintenance import AuditEntry

TEXTS = st.text(max_size=12)


def rows(count: int) -> list[AuditEntry]:
    notes = [
        Note(actor=f"u{n}", verb="approved", action_id=f"a{n}", detail={"n": n, "at": NOW})
        for n in range(count)
    ]
    return chain(EMPTY, notes, NOW)


def head_of(entries: list[AuditEntry]) -> Head:
    return Head(seq=entries[-1].seq, hash=entries[-1].hash) if entries else EMPTY


@given(
    st.lists(
        st.builds(
            Note,
            actor=TEXTS,
            verb=TEXTS,
            action_id=TEXTS,
            detail=st.dictionaries(TEXTS, TEXTS | st.integers() | st.none(), max_size=3),
        ),
        max_size=8,
    )
)
def test_what_was_written_verifies(notes: list[Note]) -> None:
    written = chain(EMPTY, notes, NOW)
    verdict = verify_chain(written, head_of(written))
    assert verdict.is_intact, verdict.problem
    assert verdict.entries == len(notes)


@given(
    count=st.integers(1, 9),
    victim=st.integers(0, 8),
    field=st.sampled_from(
        ["actor", "verb", "action_id", "detail", "prev_hash", "hash", "noted_at"]
    ),
)
def test_an_edited_row_is_named(count: int, victim: int, field: str) -> None:
    entries = rows(count)
    victim %= count
    row = entries[victim]
    value = row.noted_at + timedelta(microseconds=1) if field == "noted_at" else "x" * 64
    changed = [*entries]
    changed[victim] = replace(row, **{field: value})
    verdict = verify_chain(changed, head_of(entries))
    assert not verdict.is_intact
    assert verdict.first_bad == row.seq


@given(count=st.integers(2, 9), victim=st.integers(0, 7))
def test_a_row_edited_and_given_a_new_hash_is_named(count: int, victim: int) -> None:
    entries = rows(count)
    victim %= count
    forged = replace(entries[victim], actor="mallory")
    changed = [*entries]
    changed[victim] = replace(forged, hash=entry_hash(forged))
    verdict = verify_chain(changed, head_of(entries))
    assert not verdict.is_intact
    assert verdict.first_bad == entries[victim].seq


@given(count=st.integers(1, 9), first=st.integers(0, 8), length=st.integers(1, 9))
def test_deleted_rows_are_missed_wherever_they_were(count: int, first: int, length: int) -> None:
    entries = rows(count)
    first %= count
    left = entries[:first] + entries[first + length :]
    verdict = verify_chain(left, head_of(entries))
    assert not verdict.is_intact
    assert verdict.first_bad == entries[first].seq
    assert "missing" in str(verdict.problem)


@given(count=st.integers(2, 9), one=st.integers(0, 8), other=st.integers(0, 8))
def test_swapped_rows_are_named(count: int, one: int, other: int) -> None:
    entries = rows(count)
    one, other = sorted((one % count, other % count))
    if one == other:
        return
    changed = [*entries]
    changed[one] = replace(entries[other], seq=entries[one].seq)
    changed[other] = replace(entries[one], seq=entries[other].seq)
    verdict = verify_chain(changed, head_of(entries))
    assert verdict.first_bad == entries[one].seq


def test_a_row_that_is_there_twice_is_named() -> None:
    entries = rows(3)
    verdict = verify_chain([*entries[:2], entries[1], entries[2]], head_of(entries))
    assert verdict.first_bad == 2


def test_rewriting_all_of_it_does_not_hide_from_the_kept_head() -> None:
    entries = rows(3)
    notes = [Note(actor="m", verb="v", action_id="a", detail={}) for _ in range(3)]
    forged = chain(EMPTY, notes, NOW)
    assert not verify_chain(forged, head_of(entries)).is_intact


def test_a_store_that_is_ahead_of_its_head_is_whole() -> None:
    """The process died between writing the row and the head."""
    entries = rows(3)
    assert verify_chain(entries, head_of(entries[:2])).is_intact


def test_without_the_head_a_cut_cannot_be_ruled_out() -> None:
    verdict = verify_chain(rows(2), None)
    assert not verdict.is_intact
    assert "cannot be told" in str(verdict.problem)
    assert verify_chain([], None).is_intact


def test_the_head_is_kept_beside_the_store(tmp_path: Path) -> None:
    store = tmp_path / "telemetry.duckdb"
    assert read_head(store) is None
    write_head(store, Head(seq=7, hash="ab"))
    assert read_head(store) == Head(seq=7, hash="ab")
    assert head_file(store).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("text", ["", "{", "[]", '{"seq": "x", "hash": ""}', '{"seq": 1}'])
def test_a_damaged_head_is_not_taken_for_none(tmp_path: Path, text: str) -> None:
    store = tmp_path / "telemetry.duckdb"
    head_file(store).write_text(text)
    with pytest.raises(MaintenanceError, match="audit-head"):
        read_head(store)


def test_the_hash_does_not_depend_on_the_zone_of_the_clock() -> None:
    entry = rows(1)[0]
    moved = replace(entry, noted_at=entry.noted_at.astimezone(UTC))
    assert entry_hash(moved) == entry.hash
    assert json.loads(entry.detail)["n"] == 0
