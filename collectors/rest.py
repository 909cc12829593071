"""JSON over HTTP from an engine: bounded in time and size, with errors that say what to do."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx

from collectors.base import BadRowError
from lakehouse_core.domain.errors import SourceError, SourceUnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_BYTES = 256 * 2**20
CALL_TIMEOUT = timedelta(seconds=20)
_GONE = (404, 410)
_BUSY = 429


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Whom we ask, and as whom.

    Attributes:
        name: what it is, for messages: `Flink's JobManager`.
        user_header: a header that names the user also where no password is asked for.
        call_timeout: how long one request may take in all.
        max_bytes: how long one answer may be.
    """

    name: str
    url: str
    user: str | None = None
    password: str | None = None
    user_header: str | None = None
    call_timeout: timedelta = CALL_TIMEOUT
    max_bytes: int = MAX_BYTES


class RestApi:
    """One client per pull: nothing is kept open between runs."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._seconds = server.call_timeout.total_seconds()
        named = {server.user_header: server.user} if server.user_header and server.user else {}
        has_login = server.user and (server.password or not named)
        auth = (server.user or "", server.password or "") if has_login else None
        self._client = httpx.Client(
            base_url=server.url,
            headers={"Accept": "application/json", **named},
            auth=auth,
            timeout=httpx.Timeout(min(self._seconds, 10)),
            trust_env=False,  # a proxy of the environment is not meant for the engine
        )

    def __enter__(self) -> RestApi:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def answer(self, path: str, kind: type, **params: str | int) -> Any:
        """An answer without which there is nothing to read.

        Raises:
            SourceUnavailableError: the server does not answer, is starting, or asks us to wait.
            SourceError: it refuses us, or what answers is not the server we were told of.
        """
        body = self._get(path, params, may_be_gone=False)
        where = f"{self._server.url}{path}"
        try:
            found = json.loads(body or b"")
        except (ValueError, RecursionError) as error:
            raise SourceError(
                f"{where} answered something that is not JSON ({error}); {self._doubt}"
            ) from error
        if not isinstance(found, kind):
            raise SourceError(
                f"{where} answered a {type(found).__name__}, not a {kind.__name__}; {self._doubt}"
            )
        return found

    def item(self, path: str, kind: type, **params: str | int) -> Any:
        """An answer about one thing; None when the server has forgotten it.

        Raises:
            BadRowError: the answer cannot be read.
            SourceUnavailableError, SourceError: as for `answer`.
        """
        body = self._get(path, params, may_be_gone=True)
        if body is None:
            return None
        try:
            found = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise BadRowError(f"{path} is not JSON ({error})") from error
        if not isinstance(found, kind):
            raise BadRowError(f"{path} is a {type(found).__name__}, not a {kind.__name__}")
        return found

    @property
    def _who(self) -> str:
        return f"user {self._server.user!r}" if self._server.user else "we"

    @property
    def _doubt(self) -> str:
        return f"check that the address is that of {self._server.name}"

    def _get(
        self, path: str, params: Mapping[str, str | int], *, may_be_gone: bool
    ) -> bytes | None:
        deadline = time.monotonic() + self._seconds
        try:
            with self._client.stream("GET", path, params=dict(params)) as response:
                if may_be_gone and response.status_code in _GONE:
                    return None
                self._check(response, path)
                return self._body(response, path, deadline)
        except httpx.TransportError as error:
            raise SourceUnavailableError(
                f"{self._server.url} does not answer ({type(error).__name__}: {error}); check that "
                f"{self._server.name} is running and that its address is right"
            ) from error

    def _body(self, response: httpx.Response, path: str, deadline: float) -> bytes:
        pieces: list[bytes] = []
        size = 0
        for piece in response.iter_bytes():
            pieces.append(piece)
            size += len(piece)
            if time.monotonic() > deadline:
                raise SourceUnavailableError(
                    f"{self._server.url}{path} did not finish its answer in {self._seconds:g} s; "
                    f"{self._server.name} is overloaded or the network slow"
                )
            if size > self._server.max_bytes:
                raise SourceError(
                    f"{self._server.url}{path} answered more than {self._server.max_bytes} bytes"
                )
        return b"".join(pieces)

    def _check(self, response: httpx.Response, path: str) -> None:
        code = response.status_code
        if code == httpx.codes.OK:
            return
        where = f"{self._server.url}{path} answered {code}"
        if code == _BUSY:
            wait = response.headers.get("Retry-After")
            asked = f", asking to wait {wait} s" if wait else ""
            raise SourceUnavailableError(f"{where} (too many requests){asked}; tried again later")
        if code >= 500:
            raise SourceUnavailableError(
                f"{where}; {self._server.name} is starting or in trouble, see its log"
            )
        if code in (401, 403):
            raise SourceError(
                f"{where}: {self._who} may not read it; set user and password of the engine to "
                "somebody who may"
            )
        raise SourceError(f"{where}; {self._doubt}")
