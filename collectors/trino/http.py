"""One GET against a coordinator: bounded in time and size, with errors that say what to do."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from collectors.base import BadRowError
from lakehouse_core.domain.errors import SourceError, SourceUnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collectors.trino.config import TrinoSettings

MAX_BYTES = 256 * 2**20
_GONE = (404, 410)
_BUSY = 429


class TrinoApi:
    """The two calls we make. One client per pull: nothing is kept open between runs."""

    def __init__(self, settings: TrinoSettings) -> None:
        self._url = settings.url
        self._user = settings.user
        self._seconds = settings.call_timeout.total_seconds()
        auth = (settings.user, settings.password) if settings.password else None
        self._client = httpx.Client(
            base_url=settings.url,
            headers={"X-Trino-User": settings.user, "Accept": "application/json"},
            auth=auth,
            timeout=httpx.Timeout(min(self._seconds, 10)),
            trust_env=False,  # a proxy of the environment is not meant for the coordinator
        )

    def __enter__(self) -> TrinoApi:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def queries(self) -> list[Any]:
        """Every query the coordinator remembers, in short form.

        Raises:
            SourceUnavailableError: it does not answer, is starting, or asks us to slow down.
            SourceError: it refuses us, or what answers is no coordinator.
        """
        body = self._get("/v1/query")
        try:
            listing = json.loads(body or b"")
        except ValueError as error:
            raise SourceError(
                f"{self._url}/v1/query answered something that is not JSON ({error}); "
                "is host and port those of a Trino coordinator?"
            ) from error
        if not isinstance(listing, list):
            raise SourceError(
                f"{self._url}/v1/query answered {type(listing).__name__}, not a list of queries; "
                "is host and port those of a Trino coordinator?"
            )
        return listing

    def query(self, query_id: str, *, is_pruned: bool) -> Mapping[str, Any] | None:
        """The long form of a query; None when the coordinator has forgotten it.

        Raises:
            BadRowError: this query's answer cannot be read.
            SourceUnavailableError: as for `queries`.
        """
        path = f"/v1/query/{quote(query_id, safe='')}"
        body = self._get(path, {"pruned": "true"} if is_pruned else {})
        if body is None:
            return None
        try:
            detail = json.loads(body)
        except ValueError as error:
            raise BadRowError(f"its details are not JSON ({error})") from error
        if not isinstance(detail, dict):
            raise BadRowError(f"its details are a {type(detail).__name__}, not an object")
        return detail

    def _get(self, path: str, params: Mapping[str, str] | None = None) -> bytes | None:
        deadline = time.monotonic() + self._seconds
        try:
            with self._client.stream("GET", path, params=params) as response:
                if path != "/v1/query" and response.status_code in _GONE:
                    return None
                self._check(response, path)
                return self._body(response, path, deadline)
        except httpx.TransportError as error:
            raise SourceUnavailableError(
                f"{self._url} does not answer ({type(error).__name__}: {error}); "
                "is Trino running, and are host and port of the engine right?"
            ) from error

    def _body(self, response: httpx.Response, path: str, deadline: float) -> bytes:
        pieces: list[bytes] = []
        size = 0
        for piece in response.iter_bytes():
            pieces.append(piece)
            size += len(piece)
            if time.monotonic() > deadline:
                raise SourceUnavailableError(
                    f"{self._url}{path} did not finish its answer in {self._seconds:g} s; "
                    "the coordinator is overloaded or the network slow"
                )
            if size > MAX_BYTES:
                raise SourceError(f"{self._url}{path} answered more than {MAX_BYTES} bytes")
        return b"".join(pieces)

    def _check(self, response: httpx.Response, path: str) -> None:
        code = response.status_code
        if code == httpx.codes.OK:
            return
        where = f"{self._url}{path} answered {code}"
        if code == _BUSY:
            wait = response.headers.get("Retry-After")
            asked = f", asking to wait {wait} s" if wait else ""
            raise SourceUnavailableError(f"{where} (too many requests){asked}; tried again later")
        if code >= 500:
            raise SourceUnavailableError(
                f"{where}; the coordinator is starting or in trouble, see its log"
            )
        if code in (401, 403):
            raise SourceError(
                f"{where}: user {self._user!r} may not read the query history; set user and "
                "password of the engine to somebody who may"
            )
        raise SourceError(f"{where}; is host and port those of a Trino coordinator?")
