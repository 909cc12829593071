"""A failed check reaches people once, by the channels they named."""

from __future__ import annotations

from datetime import timedelta

from lakehouse_core.domain.maintenance import State
from lakehouse_core.finops.alerts import as_json, deliver
from lakehouse_core.maintenance.alarm import alarm_of
from tests.factories import NOW, action


def test_an_alarm_says_what_was_found_and_what_to_do() -> None:
    failed = action(
        state=State.FAILED,
        started_at=NOW - timedelta(minutes=3),
        explanation="rows in files: expected 10, found 9",
    )
    alarm = alarm_of(failed, ("chat",), NOW)
    told = as_json(alarm)
    assert told["subject"] == failed.table_id
    assert "expected 10, found 9" in told["text"]
    assert f"lakehelm maintain show {failed.action_id}" in told["text"]
    assert (told["amount"], told["expected"], told["currency"]) == (None, None, None)
    assert alarm_of(failed, ("chat",), NOW + timedelta(days=1)).alert_id == alarm.alert_id
    assert not alarm.settled
    assert deliver(alarm, {}, NOW).delivered == {"chat": "failed: there is no channel chat"}
