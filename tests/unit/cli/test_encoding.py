"""How our values look as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import IntEnum
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pydantic import BaseModel, SecretStr

from lakehouse_core.cli.encoding import to_json
from lakehouse_core.domain.health import HealthState
from tests.factories import query_event, table_health


class Grade(IntEnum):
    LOW = 1


@dataclass(frozen=True)
class Pair:
    left: object
    right: object


class Model(BaseModel):
    token: SecretStr


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC), "2026-01-02T03:04:05.000678Z"),
        (datetime(2026, 1, 2, 3, tzinfo=timezone(timedelta(hours=2))), "2026-01-02T01:00:00Z"),
        (datetime(2026, 1, 2), "2026-01-02T00:00:00Z"),  # noqa: DTZ001 drivers return such
        (date(2026, 1, 2), "2026-01-02"),
        (timedelta(minutes=1.5), 90.0),
        (Decimal("1.10"), "1.10"),
        (Decimal("1E+3"), "1000"),
        (Decimal("NaN"), None),
        (float("nan"), None),
        (float("inf"), None),
        (True, True),
        (7, 7),
        (Grade.LOW, 1),
        (HealthState.CRITICAL, "critical"),
        (Path("a") / "b", "a/b"),
        (b"\x01\xff", "01ff"),
        ({"b", "a"}, ["a", "b"]),
        ((1, 2), [1, 2]),
        ({HealthState.HEALTHY: 1}, {"healthy": 1}),
        (Pair(None, Decimal("0.1")), {"left": None, "right": "0.1"}),
        (Model(token=SecretStr("hunter2")), {"token": "**********"}),
        (pa.table({"n": [1, None], "s": ["x", "ü"]}), [{"n": 1, "s": "x"}, {"n": None, "s": "ü"}]),
    ],
)
def test_value_has_its_agreed_form(value: Any, expected: Any) -> None:
    assert json.loads(to_json(value)) == expected


def test_records_of_the_domain_can_be_printed() -> None:
    event = json.loads(to_json(query_event(query_id="q")))
    assert (event["query_id"], event["status"]) == ("q", "finished")
    health = json.loads(to_json(table_health()))
    assert health["contributors"][0]["state"] == "critical"


def test_value_without_a_form_is_refused_by_its_type() -> None:
    with pytest.raises(TypeError, match="no JSON form for a value of type object"):
        to_json({"a": object()})
