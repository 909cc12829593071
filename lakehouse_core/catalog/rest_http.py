"""HTTP to an Iceberg REST catalog: who we are, how long we wait, when we try again.

pyiceberg asks without a limit in time, once, and reads all of a table's metadata into models. A
sweep over thousands of tables needs one line of each answer, and must not hang or hammer.
"""

from __future__ import annotations

import json
import random
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import quote, unquote

import httpx

from lakehouse_core.config.secrets import resolve_secret
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.errors import (
    CatalogError,
    CatalogRefusedError,
    CatalogUnavailableError,
    ConfigError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pydantic import SecretStr

    from lakehouse_core.config.catalogs import RestCatalog

ATTEMPTS = 5
FIRST_DELAY_SECONDS = 0.25
LONGEST_DELAY_SECONDS = 30.0
MAX_BYTES = 256 * 2**20
_MAX_REASON = 300
_RENEW_BEFORE_SECONDS = 30.0
# As Iceberg's own client: what a proxy or an overloaded server says, and what may be asked again.
_AGAIN = (429, 502, 503, 504)
_UNKNOWN_TO_IT = (401, 419)  # 419: Iceberg's code for a token that has expired
_DEFAULT_SEPARATOR = "%1F"


class MissingError(CatalogError):
    """Raised when the server does not have what was asked for; `kind` is its name for that."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


class ServerFaultError(CatalogUnavailableError):
    """Raised when the server failed at this one question; others it may well answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back; `body` is None when nothing changed since the given ETag."""

    body: dict[str, Any] | None
    etag: str | None


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the catalog's resources are, from its own configuration."""

    base: str
    separator: str
    headers: Mapping[str, str]


@dataclass(slots=True)
class _Token:
    value: str
    good_until: float | None  # on the monotonic clock


class RestHttp:
    """GET questions to one catalog; safe to use from many threads."""

    def __init__(
        self,
        config: RestCatalog,
        *,
        wait: Callable[[float], None] = time.sleep,
        luck: Callable[[], float] = random.random,
    ) -> None:
        self._config = config
        self._seconds = config.timeout.total_seconds()
        self._wait = wait
        self._luck = luck
        self._lock = threading.RLock()
        self._client: httpx.Client | None = None
        self._place: _Place | None = None
        self._token: _Token | None = None
        self._pause_until = 0.0
        self._secrets: set[str] = set()

    def get(
        self, path: Sequence[str | tuple[str, ...]], params: Mapping[str, str], etag: str = ""
    ) -> Answer:
        """Ask for one resource.

        Args:
            path: its parts, unquoted; a tuple is a namespace.
            params: query parameters.
            etag: of the last answer, if that is still at hand.

        Raises:
            MissingError: the server does not have it.
            CatalogRefusedError: we may not read it.
            ServerFaultError: the server failed at it.
            CatalogUnavailableError: the server does not answer, or asks us to wait for too long.
            CatalogError: the answer makes no sense.
        """
        place = self._found_place()
        parts = (self._in_path(part, place.separator) for part in path)
        headers = {**place.headers, **({"If-None-Match": etag} if etag else {})}
        return self._ask(f"{place.base}/{'/'.join(parts)}", params, headers)

    def joined(self, namespace: tuple[str, ...]) -> str:
        """A namespace as a query parameter."""
        return unquote(self._found_place().separator).join(namespace)

    def close(self) -> None:
        """Let connections, the token and the server's configuration go; may be used again."""
        with self._lock:
            client, self._client = self._client, None
            self._place = self._token = None
        if client is not None:
            client.close()

    @staticmethod
    def _in_path(part: str | tuple[str, ...], separator: str) -> str:
        levels = (part,) if isinstance(part, str) else part
        return separator.join(quote(level, safe="") for level in levels)

    def _found_place(self) -> _Place:
        with self._lock:
            if self._place is None:
                self._place = self._ask_for_place()
            return self._place

    def _ask_for_place(self) -> _Place:
        config = self._config
        headers = {
            key.removeprefix("header."): value
            for key, value in config.properties.items()
            if key.startswith("header.")
        }
        for key, ref in config.secret_properties.items():
            if key.startswith("header."):
                headers[key.removeprefix("header.")] = self._resolved(ref)
        params = {"warehouse": config.warehouse} if config.warehouse else {}
        body = self._ask(f"{config.uri}/v1/config", params, headers).body or {}
        told = {
            **(body.get("defaults") or {}),
            **config.properties,
            **(body.get("overrides") or {}),
        }
        uri = str(told.get("uri") or config.uri).rstrip("/")
        prefix = str(told.get("prefix") or "").strip("/")
        separator = str(told.get("namespace-separator") or _DEFAULT_SEPARATOR)
        return _Place(
            base=f"{uri}/v1/{prefix}".rstrip("/"),
            separator=quote(unquote(separator), safe=""),
            headers=headers,
        )

    def _ask(self, url: str, params: Mapping[str, str], headers: Mapping[str, str]) -> Answer:
        """Ask, again after a while when the server is busy, again at once with a new token."""
        is_renewed = False
        attempt = 1
        while True:
            self._keep_pause()
            try:
                token = self._current_token()
                known = {"Authorization": f"Bearer {token}"} if token else {}
                response, data = self._send("GET", url, params, {**headers, **known})
            except httpx.TransportError as error:
                if attempt == ATTEMPTS:
                    raise self._silent(url, error) from error
                self._pause(self._delay(attempt))
                attempt += 1
                continue
            code = response.status_code
            if code in _UNKNOWN_TO_IT and not is_renewed and self._forget_token(token):
                is_renewed = True
                continue
            if code in _AGAIN and attempt < ATTEMPTS:
                self._pause(_asked_for(response) or self._delay(attempt))
                attempt += 1
                continue
            if code == httpx.codes.NOT_MODIFIED:
                return Answer(None, response.headers.get("ETag"))
            if code != httpx.codes.OK:
                self._refuse(url, response, data)
            return Answer(self._parsed(url, data), response.headers.get("ETag"))

    def _send(
        self,
        method: str,
        url: str,
        params: Mapping[str, str],
        headers: Mapping[str, str],
        form: Mapping[str, str] | None = None,
    ) -> tuple[httpx.Response, bytes]:
        deadline = time.monotonic() + self._seconds
        pieces: list[bytes] = []
        size = 0
        with self._opened().stream(
            method, url, params=dict(params), headers=dict(headers), data=form
        ) as response:
            for piece in response.iter_bytes():
                pieces.append(piece)
                size += len(piece)
                if time.monotonic() > deadline:
                    raise httpx.ReadTimeout(f"no end of the answer within {self._seconds:g} s")
                if size > MAX_BYTES:
                    raise CatalogError(f"{url} answered more than {MAX_BYTES} bytes")
        return response, b"".join(pieces)

    def _opened(self) -> httpx.Client:
        with self._lock:
            if self._client is None:
                limits = httpx.Limits(max_connections=self._config.concurrency + 2)
                # Proxies and certificates of the environment count, as they do for pyiceberg.
                self._client = httpx.Client(
                    timeout=httpx.Timeout(self._seconds),
                    limits=limits,
                    headers={"Accept": "application/json", "User-Agent": "lakehelm"},
                )
            return self._client

    def _current_token(self) -> str | None:
        config = self._config
        with self._lock:
            kept = self._token
            if kept and (kept.good_until is None or time.monotonic() < kept.good_until):
                return kept.value
            if config.token is not None:
                self._token = _Token(self._resolved(config.token), None)
            elif config.credential is not None:
                self._token = self._fetch_token(self._resolved(config.credential))
            return self._token.value if self._token else None

    def _forget_token(self, refused: str | None) -> bool:
        """Whether another token can be had: a new one, or what the file holds by now."""
        if refused is None:
            return False
        with self._lock:
            if self._token is not None and self._token.value == refused:
                self._token = None
        return True

    def _fetch_token(self, credential: str) -> _Token:
        name, colon, secret = credential.partition(":")
        self._secret(secret or name)
        url = self._config.oauth2_server_uri or f"{self._config.uri}/v1/oauth/tokens"
        form = {
            "grant_type": "client_credentials",
            **({"client_id": name, "client_secret": secret} if colon else {"client_secret": name}),
            "scope": self._config.scope,
        }
        response, data = self._send("POST", url, {}, {}, form)
        if response.status_code != httpx.codes.OK:
            self._refuse(url, response, data)
        body = self._parsed(url, data)
        value = body.get("access_token")
        if not isinstance(value, str) or not value:
            raise CatalogError(f"{url} answered without an access_token; is it a token endpoint?")
        lifetime = body.get("expires_in")
        good_until = None
        if isinstance(lifetime, int | float):
            margin = min(_RENEW_BEFORE_SECONDS, lifetime / 2)
            good_until = time.monotonic() + lifetime - margin
        return _Token(self._secret(value), good_until)

    def _refuse(self, url: str, response: httpx.Response, data: bytes) -> NoReturn:
        code = response.status_code
        kind, reason = self._reason(data)
        where = f"{url} answered {code}" + (f" ({reason})" if reason else "")
        if code in _UNKNOWN_TO_IT:
            raise CatalogRefusedError(
                f"{where}: the catalog does not know us; set token or credential of the catalog"
            )
        if code == httpx.codes.FORBIDDEN:
            raise CatalogRefusedError(
                f"{where}: we may not read it; let the role behind the catalog's token or "
                "credential list namespaces, list tables and load tables"
            )
        if code == httpx.codes.NOT_FOUND:
            raise MissingError(where, kind)
        if code in _AGAIN:
            raise CatalogUnavailableError(
                f"{where}, {ATTEMPTS} times; the catalog is busy, starting or in trouble"
            )
        if code >= httpx.codes.INTERNAL_SERVER_ERROR:
            raise ServerFaultError(f"{where}; see the catalog's log")
        raise CatalogError(f"{where}; is its uri that of an Iceberg REST catalog?")

    def _reason(self, data: bytes) -> tuple[str, str]:
        """What the server calls the error, and its words in one line without our secrets."""
        kind, message = "", ""
        with suppress(ValueError, RecursionError):
            found = json.loads(data)
            error = found.get("error") if isinstance(found, dict) else None
            if isinstance(error, dict):
                kind, message = str(error.get("type") or ""), str(error.get("message") or "")
            elif isinstance(error, str):  # a token endpoint speaks as OAuth2 does
                message = f"{error}: {found.get('error_description') or 'no reason given'}"
        for secret in self._secrets:
            message = message.replace(secret, "***")
        return kind, " ".join(message.split())[:_MAX_REASON]

    def _parsed(self, url: str, data: bytes) -> dict[str, Any]:
        try:
            found = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise CatalogError(
                f"{url} answered something that is not JSON; is its uri that of an Iceberg REST "
                "catalog?"
            ) from error
        if not isinstance(found, dict):
            raise CatalogError(f"{url} answered a {type(found).__name__}, not an object")
        return found

    def _silent(self, url: str, error: httpx.TransportError) -> CatalogUnavailableError:
        return CatalogUnavailableError(
            f"{url} does not answer, {ATTEMPTS} times ({type(error).__name__}: {error}); check "
            "that the catalog is running and that its uri is right"
        )

    def _delay(self, attempt: int) -> float:
        return float(FIRST_DELAY_SECONDS * 2 ** (attempt - 1) * (0.5 + self._luck()))

    def _pause(self, seconds: float) -> None:
        """Let all threads wait: a server that is busy is busy for all of them."""
        with self._lock:
            until = time.monotonic() + min(seconds, LONGEST_DELAY_SECONDS)
            self._pause_until = max(self._pause_until, until)

    def _keep_pause(self) -> None:
        remaining = self._pause_until - time.monotonic()
        if remaining > 0:
            self._wait(remaining)

    def _resolved(self, ref: SecretStr) -> str:
        try:
            return self._secret(resolve_secret(ref))
        except ConfigError as error:
            raise CatalogRefusedError(f"{self._config.uri} is not asked: {error}") from error

    def _secret(self, value: str) -> str:
        """Note a value that must not be in any message."""
        self._secrets.add(value)
        return value


def _asked_for(response: httpx.Response) -> float | None:
    """How long the server asks us to wait: seconds, or until a date."""
    text = response.headers.get("Retry-After", "")
    with suppress(ValueError):
        return max(0.0, float(text))
    with suppress(ValueError):
        until = parsedate_to_datetime(text)
        until = until if until.tzinfo else until.replace(tzinfo=UTC)
        return max(0.0, (until - utc_now()).total_seconds())
    return None
