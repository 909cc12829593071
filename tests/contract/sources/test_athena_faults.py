"""What AWS can do to us, and what we make of it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.collect import CollectReport, read_watermark, run_once
from collectors.athena.config import AthenaSettings, AwsKeys
from collectors.athena.source import AthenaSource
from collectors.understanding import Understanding
from lakehouse_core.domain.errors import SourceError, SourceUnavailableError
from lakehouse_core.domain.query import EngineId
from tests.contract.sources.athena_world import KEYS
from tests.contract.sources.cloud import REGION, Answer, Cloud, refusal
from tests.contract.sources.tallies import letters
from tests.factories import NOW

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from lakehouse_core.store.owner import OwnerStore

pytestmark = pytest.mark.slow

QUERY = "00000000-0000-4000-8000-{:012}"


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    made = Cloud()
    yield made
    made.close()


def source(cloud: Cloud, now: datetime = NOW, **changes: Any) -> AthenaSource:
    made = AthenaSettings(
        engine_id=EngineId("athena"),
        region=REGION,
        workgroups=("primary",),
        catalog="lake",
        keys=KEYS,
        endpoint=cloud.url,
        call_timeout=timedelta(seconds=5),
        attempts=1,
        page=5,
        batch_queries=5,
    )
    return AthenaSource(replace(made, **changes), Understanding(), lambda: now)


def collect(reader: AthenaSource, store: OwnerStore) -> CollectReport:
    return run_once(reader, store, lambda: NOW, timeout=timedelta(minutes=1))


def stored(store: OwnerStore) -> set[str]:
    return set(store.read("SELECT query_id FROM query_event").column("query_id").to_pylist())


def always(answer: Answer) -> Any:
    def fault(_operation: str, _arguments: dict[str, Any]) -> None:
        raise answer

    return fault


# --- refusals and troubles -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (refusal(400, "ThrottlingException", "Rate exceeded"), "too many requests"),
        (refusal(400, "TooManyRequestsException"), "too many requests"),
        (refusal(500, "InternalServerException"), "in trouble"),
        (Answer(503, b"Service Unavailable"), "503|in trouble"),
    ],
)
def test_trouble_is_tried_again_later(cloud: Cloud, answer: Answer, said: str) -> None:
    cloud.fault = always(answer)
    with pytest.raises(SourceUnavailableError, match=said) as caught:
        list(source(cloud).pull(None))
    assert cloud.url in str(caught.value)


def test_a_throttled_call_is_repeated_before_it_is_given_up(
    cloud: Cloud, store: OwnerStore
) -> None:
    cloud.add(QUERY.format(1))
    left = [refusal(400, "ThrottlingException")]

    def throttle_once(operation: str, _arguments: dict[str, Any]) -> None:
        if operation == "BatchGetQueryExecution" and left:
            raise left.pop()

    cloud.fault = throttle_once
    report = collect(source(cloud, attempts=2), store)
    assert report.error is None
    assert stored(store) == {QUERY.format(1)}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (refusal(403, "ExpiredTokenException", "s3cr3t is expired"), "expired; renew them"),
        (refusal(403, "UnrecognizedClientException", "s3cr3t"), "does not accept"),
        (refusal(403, "InvalidSignatureException", "s3cr3t"), "clock of this machine"),
        (refusal(400, "AccessDeniedException", "s3cr3t"), "athena:ListQueryExecutions"),
        (refusal(400, "InvalidRequestException", "WorkGroup is not found"), "check region and"),
        (Answer(200, b"<html>hello</html>"), "is the endpoint right"),
        (Answer(200, b'{"QueryExecutionIds": "x"}'), "is the endpoint right"),
        (Answer(200, b"\xff\xfe"), "is the endpoint right"),
    ],
)
def test_a_refusal_says_what_to_do_and_no_secret(cloud: Cloud, answer: Answer, said: str) -> None:
    cloud.fault = always(answer)
    keys = AwsKeys(
        access_key_id="AKIAS3CR3T", secret_access_key="s3cr3t", session_token="s3cr3t-token"
    )
    with pytest.raises(SourceError, match=said) as caught:
        list(source(cloud, keys=keys).pull(None))
    assert not isinstance(caught.value, SourceUnavailableError)
    assert "s3cr3t" not in f"{caught.value} {keys!r} {keys}".lower()


def test_without_credentials_it_says_where_to_put_them(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    with pytest.raises(SourceError, match=r"no AWS credentials.*profile"):
        list(source(cloud, keys=None).pull(None))
    with pytest.raises(SourceError, match=r"no AWS credentials.*ProfileNotFound"):
        list(source(cloud, keys=None, profile="nobody").pull(None))


def test_a_call_that_never_returns_is_given_up(cloud: Cloud) -> None:
    def hang(_operation: str, _arguments: dict[str, Any]) -> None:
        cloud.release.wait(30)

    cloud.fault = hang
    with pytest.raises(SourceUnavailableError, match="does not answer"):
        list(source(cloud, call_timeout=timedelta(seconds=0.2)).pull(None))


# --- workgroups ----------------------------------------------------------------------------------


def test_all_workgroups_are_read_and_a_missing_one_stops_no_other(
    cloud: Cloud, store: OwnerStore
) -> None:
    cloud.workgroup("adhoc")
    cloud.add(QUERY.format(1))
    cloud.add(QUERY.format(2), workgroup="adhoc")
    reader = source(cloud, workgroups=("primary", "gone", "adhoc"))
    report = collect(reader, store)
    assert report.error is not None
    assert "gone" in report.error
    assert report.result.outcome == "partial"
    assert stored(store) == {QUERY.format(1), QUERY.format(2)}
    assert collect(reader, store).rows == 0


# --- pages ---------------------------------------------------------------------------------------


def test_at_most_fifty_ids_are_asked_for_at_once(cloud: Cloud, store: OwnerStore) -> None:
    for number in range(120):
        cloud.add(QUERY.format(number))
    collect(source(cloud, page=50, batch_queries=500), store)
    assert len(stored(store)) == 120
    sizes = [len(a["QueryExecutionIds"]) for a in cloud.calls("BatchGetQueryExecution")]
    assert sizes == [50, 50, 20]


def test_paging_stops_where_everything_was_read_before(cloud: Cloud, store: OwnerStore) -> None:
    for number in range(40):
        cloud.add(QUERY.format(number), at=NOW - timedelta(hours=40 - number))
    collect(source(cloud), store)
    cloud.add(QUERY.format(99), at=NOW)
    cloud.asked.clear()
    collect(source(cloud), store)
    assert len(stored(store)) == 41
    assert len(cloud.calls("ListQueryExecutions")) == 2  # not all nine pages


def test_a_pull_cut_between_pages_goes_on_where_it_was_cut(cloud: Cloud, store: OwnerStore) -> None:
    for number in range(23):
        cloud.add(QUERY.format(number), at=NOW - timedelta(days=23 - number))
    report = run_once(source(cloud), store, lambda: NOW, timeout=timedelta(0))
    assert report.was_cut
    assert len(stored(store)) == 5
    cloud.add(QUERY.format(100), at=NOW)
    cut_again = run_once(source(cloud), store, lambda: NOW, timeout=timedelta(0))
    assert cut_again.was_cut
    assert QUERY.format(100) in stored(store)  # what is new comes first
    assert collect(source(cloud), store).error is None
    assert len(stored(store)) == 24
    batches = [a["QueryExecutionIds"] for a in cloud.calls("BatchGetQueryExecution")]
    asked = [i for ids in batches for i in ids]
    assert len(asked) <= 24 + 20  # two pages that overlap each time, not all over again


def test_a_page_token_that_went_stale_starts_over_and_skips_nothing(
    cloud: Cloud, store: OwnerStore
) -> None:
    for number in range(23):
        cloud.add(QUERY.format(number), at=NOW - timedelta(days=23 - number))
    run_once(source(cloud), store, lambda: NOW, timeout=timedelta(0))
    stale = [True]

    def refuse_tokens(operation: str, arguments: dict[str, Any]) -> None:
        if operation == "ListQueryExecutions" and "NextToken" in arguments and stale:
            stale.clear()
            raise refusal(400, "InvalidRequestException", "Invalid pagination token")

    cloud.fault = refuse_tokens
    assert collect(source(cloud), store).error is None
    assert not stale
    assert len(stored(store)) == 23


def test_trouble_half_way_keeps_what_was_read(cloud: Cloud, store: OwnerStore) -> None:
    for number in range(23):
        cloud.add(QUERY.format(number), at=NOW - timedelta(days=23 - number))

    def fail_third(operation: str, _arguments: dict[str, Any]) -> None:
        if operation == "ListQueryExecutions" and len(cloud.calls(operation)) == 3:
            raise refusal(400, "ThrottlingException")

    cloud.fault = fail_third
    report = collect(source(cloud, batch_queries=100), store)
    assert report.is_unreachable
    assert len(stored(store)) == 10
    cloud.fault = None
    assert collect(source(cloud), store).error is None
    assert len(stored(store)) == 23


@pytest.mark.slow
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_fails_and_whenever_it_is_cut_no_query_is_passed_over(
    store: OwnerStore, data: st.DataObject
) -> None:
    for name in ("query_event", "watermark", "dead_letter"):
        store.transact(name, [f"DELETE FROM {name}"])  # noqa: S608 names of our own tables
    world = Cloud()
    added = 0
    try:
        for _ in range(data.draw(st.integers(1, 5))):
            for _ in range(data.draw(st.integers(0, 12))):
                late = data.draw(st.integers(-60, 60))
                world.add(QUERY.format(added), at=NOW + timedelta(minutes=late))
                added += 1
            failing = data.draw(st.integers(0, 12))
            answer = data.draw(
                st.sampled_from(["ThrottlingException", "InvalidRequestException", "ExpiredToken"])
            )

            def fault(
                _operation: str,
                _arguments: dict[str, Any],
                at: int = failing,
                code: str = answer,
            ) -> None:
                if len(world.asked) == at:
                    raise refusal(400, code)

            world.asked.clear()
            world.fault = fault
            is_cut = data.draw(st.booleans())
            run_once(
                source(world),
                store,
                lambda: NOW,
                timeout=timedelta(0) if is_cut else timedelta(minutes=1),
            )
        world.fault = None
        report = collect(source(world), store)
        assert report.error is None
        assert len(stored(store)) == added
        assert letters(store) == []
        assert collect(source(world), store).rows == 0
    finally:
        world.close()


# --- single queries ------------------------------------------------------------------------------


def test_ids_left_unprocessed_are_asked_for_again(cloud: Cloud, store: OwnerStore) -> None:
    for number in range(3):
        cloud.add(QUERY.format(number))
    hidden = cloud.backend.executions[QUERY.format(1)]

    def hide(operation: str, _arguments: dict[str, Any]) -> None:
        rounds = len(cloud.calls("BatchGetQueryExecution"))
        if operation == "BatchGetQueryExecution" and rounds == 1:
            cloud.backend.executions.pop(hidden.id, None)
        else:
            cloud.backend.executions.setdefault(hidden.id, hidden)

    cloud.fault = hide
    assert collect(source(cloud), store).error is None
    assert len(stored(store)) == 3


def test_an_id_that_stays_unprocessed_is_owed_until_it_is_told(
    cloud: Cloud, store: OwnerStore
) -> None:
    for number in range(3):
        cloud.add(QUERY.format(number), at=NOW - timedelta(hours=3 - number))
    hidden = cloud.backend.executions[QUERY.format(1)]

    def hide(operation: str, _arguments: dict[str, Any]) -> None:
        if operation == "BatchGetQueryExecution":
            cloud.backend.executions.pop(hidden.id, None)
        else:
            cloud.backend.executions.setdefault(hidden.id, hidden)

    cloud.fault = hide
    collect(source(cloud), store)
    assert stored(store) == {QUERY.format(0), QUERY.format(2)}
    cloud.fault = None
    cloud.backend.executions.setdefault(hidden.id, hidden)
    collect(source(cloud), store)
    assert len(stored(store)) == 3
    assert letters(store) == []


def test_a_running_query_that_is_never_told_of_again_does_not_run_forever(
    cloud: Cloud, store: OwnerStore
) -> None:
    payload = cloud.add(QUERY.format(1))
    payload["Status"]["State"] = "RUNNING"
    collect(source(cloud), store)
    cloud.forget()
    collect(source(cloud), store)
    running = store.read("SELECT status FROM query_event").column("status").to_pylist()
    assert running == ["running"]
    collect(source(cloud, now=NOW + timedelta(days=3)), store)
    row = store.read("SELECT status, error_class, sql_text FROM query_event").to_pylist()[0]
    assert (row["status"], row["error_class"]) == ("failed", "history_lost")
    assert row["sql_text"] == payload["Query"]
    assert len(letters(store)) == 1
    collect(source(cloud, now=NOW + timedelta(days=3)), store)
    assert len(letters(store)) == 1


def test_one_answer_that_is_not_utf8_spoils_one_query_only(cloud: Cloud, store: OwnerStore) -> None:
    for number in range(4):
        cloud.add(QUERY.format(number))

    def garble(_operation: str, arguments: dict[str, Any]) -> None:
        ids = arguments.get("QueryExecutionIds") or [arguments.get("QueryExecutionId")]
        if QUERY.format(2) in ids:
            raise Answer(200, b'{"QueryExecutions": [{"Query": "\xff\xfe"}]}')

    cloud.fault = garble
    report = collect(source(cloud), store)
    assert report.error is None
    assert len(stored(store)) == 3
    assert len(letters(store)) == 1
    assert QUERY.format(2) in letters(store)[0]
    cloud.fault = None
    collect(source(cloud), store)  # when it can be read after all, it is
    assert len(stored(store)) == 4


def test_five_megabytes_of_sql_are_taken(cloud: Cloud, store: OwnerStore) -> None:
    text = "SELECT '" + "x" * 5_000_000 + "' FROM lake.demo.t"
    cloud.add(QUERY.format(1), Query=text)
    assert collect(source(cloud), store).error is None
    kept = store.read("SELECT length(sql_text) AS n FROM query_event").column("n")[0].as_py()
    assert kept == len(text)


def test_the_same_query_listed_twice_and_out_of_order_is_one_row(
    cloud: Cloud, store: OwnerStore
) -> None:
    for number in (3, 1, 2):
        cloud.add(QUERY.format(number), at=NOW + timedelta(minutes=number))
    listing = {"QueryExecutionIds": [QUERY.format(n) for n in (2, 1, 2, 3, 1)]}

    def twice(operation: str, _arguments: dict[str, Any]) -> None:
        if operation == "ListQueryExecutions":
            raise Answer(200, listing)

    cloud.fault = twice
    collect(source(cloud), store)
    assert store.read("FROM query_event").num_rows == 3


def test_a_secret_in_a_running_query_reaches_neither_event_nor_position(
    cloud: Cloud, store: OwnerStore
) -> None:
    payload = cloud.add(QUERY.format(1), Query="ALTER USER bob SET PASSWORD 'c4n4ry'")
    payload["Status"]["State"] = "RUNNING"
    collect(source(cloud), store)
    for table in ("query_event", "watermark", "query_template", "dead_letter"):
        rows = store.read(f"FROM {table}").to_pylist()
        assert "c4n4ry" not in json.dumps(rows, default=str)


def test_the_position_does_not_grow_with_the_history(cloud: Cloud, store: OwnerStore) -> None:
    for number in range(300):
        cloud.add(QUERY.format(number), at=NOW - timedelta(minutes=300 - number))
    collect(source(cloud, page=50), store)
    watermark = read_watermark(store, "athena")
    assert watermark is not None
    assert len(watermark.position) < 2_000  # the queries of the overlap, not three hundred
