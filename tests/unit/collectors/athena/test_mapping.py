"""Payloads in the form of AWS's service model, as boto3 hands them on."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.athena.config import AthenaSettings
from collectors.athena.mapping import is_final, submitted_at, to_observed
from collectors.base import BadRowError
from collectors.understanding import Observed, Understanding
from lakehouse_core.domain.query import EngineId, QueryStatus
from tests.factories import NOW

FIXTURES = Path(__file__).parents[3] / "integration" / "fixtures" / "athena"
SETTINGS = AthenaSettings(
    engine_id=EngineId("athena"), region="eu-central-1", workgroups=("primary",), catalog="lake"
)


def payload(name: str) -> dict[str, Any]:
    found = json.loads((FIXTURES / f"{name}.json").read_text())["QueryExecution"]
    for field in ("SubmissionDateTime", "CompletionDateTime"):
        if field in found["Status"]:
            found["Status"][field] = datetime.fromtimestamp(found["Status"][field], UTC)
    return found


def observe(name: str) -> Observed:
    return to_observed(SETTINGS, payload(name), NOW)


def test_a_finished_query_has_every_figure_athena_tells() -> None:
    event = observe("succeeded").event
    assert event.status is QueryStatus.FINISHED
    assert event.query_id == "0f1a2b3c-4d5e-4f60-8a7b-9c0d1e2f3a4b"
    assert event.sql_text == "SELECT v FROM lake.demo.t WHERE id = 7"
    assert event.submitted_at == datetime(2026, 11, 16, 12, 0, 0, 123000, UTC)
    assert event.started_at == datetime(2026, 11, 16, 12, 0, 0, 374000, UTC)
    assert event.ended_at == datetime(2026, 11, 16, 12, 0, 2, 648000, UTC)
    assert (event.queued_ms, event.planning_ms) == (187.0, 412.0)
    assert (event.execution_ms, event.elapsed_ms) == (2101.0, 2525.0)
    assert event.bytes_scanned == 1_048_576
    assert event.tags == (
        "workgroup=primary",
        "statement_type=DML",
        "substatement_type=SELECT",
        "engine_version=Athena engine version 3",
        "service_preprocessing_ms=64",
        "service_processing_ms=173",
        "result_reused=false",
    )
    assert event.engine_url is not None
    assert event.query_id in event.engine_url


def test_what_athena_does_not_tell_is_unknown() -> None:
    event = observe("succeeded").event
    assert event.user_name is None
    assert event.source is None
    assert event.cpu_ms is None
    assert event.rows_returned is None
    assert event.error_message is None


def test_a_failure_keeps_class_code_and_message() -> None:
    event = observe("failed").event
    assert event.status is QueryStatus.FAILED
    assert (event.error_class, event.error_code) == ("user", "1006")
    assert event.error_message is not None
    assert event.error_message.startswith("COLUMN_NOT_FOUND")
    assert event.bytes_scanned == 0
    assert event.planning_ms is None


def test_a_cancelled_query_is_no_failure_and_was_billed_for_what_it_scanned() -> None:
    event = observe("cancelled").event
    assert event.status is QueryStatus.CANCELLED
    assert event.error_class is None
    assert event.error_message == "Query cancelled by user"
    assert event.bytes_scanned == 524_288


def test_ddl_can_be_told_from_what_is_billed() -> None:
    observed = observe("ddl")
    assert "statement_type=DDL" in observed.event.tags
    rows = Understanding().rows([observed])["query_event"].to_pylist()[0]
    assert rows["statement_kind"] == "create"


def test_a_queued_query_has_neither_start_nor_end_nor_figures() -> None:
    event = observe("queued").event
    assert event.status is QueryStatus.QUEUED
    assert (event.started_at, event.ended_at, event.bytes_scanned) == (None, None, None)
    assert not is_final(payload("queued"))


def test_capacity_and_manifest_become_tags() -> None:
    tags = observe("provisioned").event.tags
    assert "dpu_count=24.0" in tags
    assert any(t.startswith("data_manifest=s3://example-results/") for t in tags)


def test_a_reused_result_says_so() -> None:
    event = observe("reused").event
    assert "result_reused=true" in event.tags
    assert event.bytes_scanned == 0


def test_unqualified_names_are_those_of_our_catalog() -> None:
    observed = observe("succeeded")
    assert (observed.default_catalog, observed.default_namespace) == ("lake", ("demo",))
    other = payload("succeeded")
    other["QueryExecutionContext"] = {"Catalog": "Hive_Prod"}
    observed = to_observed(SETTINGS, other, NOW)
    assert (observed.default_catalog, observed.default_namespace) == ("hive_prod", ())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"QueryExecutionId": None}, "QueryExecutionId"),
        ({"Status": None}, "unknown state None"),
        ({"Status": {"State": "PAUSED"}}, "PAUSED"),
        ({"Status": {"State": "RUNNING"}}, "SubmissionDateTime"),
        ({"Status": {"State": "RUNNING", "SubmissionDateTime": "now"}}, "no time"),
        ({"Statistics": {"DataScannedInBytes": -1}}, "DataScannedInBytes"),
        ({"Statistics": {"DataScannedInBytes": 2**63}}, "DataScannedInBytes"),
        ({"Statistics": {"TotalExecutionTimeInMillis": "1 s"}}, "TotalExecutionTimeInMillis"),
    ],
)
def test_what_does_not_fit_is_named(change: dict[str, Any], said: str) -> None:
    with pytest.raises(BadRowError, match=said):
        to_observed(SETTINGS, {**payload("succeeded"), **change}, NOW)


def test_a_text_that_is_not_unicode_is_kept_as_far_as_it_is() -> None:
    spoilt = {**payload("succeeded"), "Query": "SELECT 'a\ud800b' FROM t"}
    rows = Understanding().rows([to_observed(SETTINGS, spoilt, NOW)])["query_event"]
    assert rows.to_pylist()[0]["sql_text"] == "SELECT 'a\ufffdb' FROM t"


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats() | st.just(NOW),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=4,
)


@given(
    field=st.sampled_from(sorted(payload("succeeded"))),
    inner=st.sampled_from(["State", "SubmissionDateTime", "DataScannedInBytes", "Database", None]),
    value=_ANY,
)
def test_any_payload_is_an_event_that_the_store_takes_or_a_bad_row(
    field: str, inner: str | None, value: Any
) -> None:
    spoilt = payload("succeeded")
    if inner is not None and isinstance(spoilt[field], dict):
        spoilt[field][inner] = value
    else:
        spoilt[field] = value
    submitted_at(spoilt)
    try:
        observed = to_observed(SETTINGS, spoilt, NOW)
    except BadRowError:
        return
    assert Understanding().rows([observed])["query_event"].num_rows == 1
