"""The three calls we make to Athena: bounded in time, with errors that say what to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from collectors.athena.config import MOST_IDS
from collectors.athena.faults import MalformedAnswerError, RefusedRequestError, translated

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collectors.athena.config import AthenaSettings

_CONNECT_SECONDS = 5.0
_ROUNDS = 3  # how often ids that Athena left unprocessed are asked for in one pull


@dataclass(frozen=True, slots=True)
class Page:
    """Ids of a workgroup's queries, newest first; no token: there are no older ones."""

    ids: tuple[str, ...]
    next_token: str | None


@dataclass(frozen=True, slots=True)
class Looked:
    """What came of asking for some queries.

    Attributes:
        found: id → the query, as Athena has it.
        unread: id → why Athena did not tell this time.
        garbled: id → why its answer cannot be read.
    """

    found: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    garbled: dict[str, str] = field(default_factory=dict)


class AthenaApi:
    """One client per pull: nothing is kept open between runs."""

    def __init__(self, settings: AthenaSettings) -> None:
        self._settings = settings
        with translated(settings, "a first look at the credentials"):
            self._client = _client(settings)

    def __enter__(self) -> AthenaApi:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def page(self, workgroup: str, token: str | None) -> Page:
        """One page of a workgroup's history.

        Raises:
            RefusedRequestError: there is no such workgroup, or the token is stale.
            SourceUnavailableError: Athena does not answer or asks us to slow down.
            SourceError: it refuses us, or what answers is not Athena.
        """
        given = {"NextToken": token} if token else {}
        doing = f"ListQueryExecutions of workgroup {workgroup}"
        with translated(self._settings, doing):
            answer = self._client.list_query_executions(
                WorkGroup=workgroup, MaxResults=min(self._settings.page, MOST_IDS), **given
            )
        # boto3 reads a text where a list should be as a list of its letters.
        ids = answer.get("QueryExecutionIds")
        if not isinstance(ids, list) or not all(isinstance(i, str) and len(i) > 1 for i in ids):
            raise MalformedAnswerError(
                f"{self._settings.place} answered {doing} without a list of ids; is the endpoint "
                "right?"
            )
        return Page(tuple(ids), answer.get("NextToken"))

    def queries(self, ids: Sequence[str]) -> Looked:
        """The queries with these ids, at most 50; what Athena leaves out is asked for again.

        Raises:
            SourceUnavailableError: as for `page`.
            SourceError: as for `page`.
        """
        looked = Looked()
        wanted = list(ids)
        for _ in range(_ROUNDS):
            if wanted:
                wanted = self._batch(wanted, looked)
        for query_id in wanted:
            looked.unread.setdefault(query_id, "it was left out of the answer")
        return looked

    def _batch(self, ids: list[str], looked: Looked) -> list[str]:
        """Ask once; returns the ids to ask for again."""
        try:
            with translated(self._settings, "BatchGetQueryExecution"):
                answer = self._client.batch_get_query_execution(QueryExecutionIds=ids)
            executions = answer.get("QueryExecutions")
            if executions is None:
                raise MalformedAnswerError("the answer holds no queries")
        except MalformedAnswerError:
            self._one_by_one(ids, looked)
            return []
        looked.found.update((str(one.get("QueryExecutionId")), one) for one in executions)
        for left in answer.get("UnprocessedQueryExecutionIds", ()):
            reason = f"{left.get('ErrorCode')}: {left.get('ErrorMessage')}"
            looked.unread[str(left.get("QueryExecutionId"))] = reason
        for query_id in looked.found:
            looked.unread.pop(query_id, None)
        return [query_id for query_id in ids if query_id not in looked.found]

    def _one_by_one(self, ids: Sequence[str], looked: Looked) -> None:
        """One query that cannot be read spoils the answer for fifty: find out which."""
        for query_id in ids:
            try:
                with translated(self._settings, f"GetQueryExecution of {query_id}"):
                    answer = self._client.get_query_execution(QueryExecutionId=query_id)
                    looked.found[query_id] = _whole(answer)
            except MalformedAnswerError as error:
                looked.garbled[query_id] = str(error)
            except RefusedRequestError as error:
                looked.unread[query_id] = str(error)


def _whole(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    query = answer.get("QueryExecution")
    if not isinstance(query, dict):
        raise ValueError("the answer holds no query")  # noqa: TRY004 told as malformed, as the rest
    return query


def _client(settings: AthenaSettings) -> Any:
    import boto3  # noqa: PLC0415 nobody pays for a driver he does not use
    from botocore.config import Config  # noqa: PLC0415 as above

    keys = settings.keys
    session = boto3.session.Session(
        profile_name=settings.profile,
        region_name=settings.region,
        aws_access_key_id=keys.access_key_id if keys else None,
        aws_secret_access_key=keys.secret_access_key if keys else None,
        aws_session_token=keys.session_token if keys else None,
    )
    seconds = settings.call_timeout.total_seconds()
    return session.client(
        "athena",
        endpoint_url=settings.endpoint,
        config=Config(
            connect_timeout=min(seconds, _CONNECT_SECONDS),
            read_timeout=seconds,
            retries={"mode": "standard", "total_max_attempts": settings.attempts},
            user_agent_extra="lakehelm",
        ),
    )
