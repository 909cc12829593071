"""The Quack servers of the owner: one port per role, loopback only, each with its own token.

Quack tells its authorisation function which server a connection came through and nothing else about
the caller, so a role is a port.
"""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import duckdb

from lakehouse_core.domain.errors import ConfigError, PortTakenError, StoreError
from lakehouse_core.store.faults import first_line
from lakehouse_core.store.literals import literal

if TYPE_CHECKING:
    from lakehouse_core.config.models import StoreConfig

Role = Literal["writer", "reader"]

# Connections of clients that were killed stay behind; the servers start afresh when there are many,
# or when one of them seems to be busy for longer than any statement of ours takes.
MOST_CONNECTIONS = 500
LONGEST_SECONDS = 3600
_CROWDED = """
SELECT count(*) > $most OR coalesce(bool_or(
  state = 'active' AND query_started_at < now()::TIMESTAMP - to_seconds($seconds)
), false)
FROM quack_active_connections()
"""


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a client must know to connect, per role; never shown."""

    writer: str = field(repr=False)
    reader: str = field(repr=False)


def address(store: StoreConfig, role: Role) -> str:
    """The Quack address of a role: writers on the configured port, readers on the next.

    Raises:
        ConfigError: the host is not this machine, or there is no next port.
    """
    if not _is_loopback(store.host):
        raise ConfigError(
            f"store.host is {store.host!r}: the store is served to this machine only; "
            "use 127.0.0.1, or put a TLS proxy in front of it"
        )
    port = store.port if role == "writer" else store.port + 1
    if port > 65_535:
        raise ConfigError(f"store.port is {store.port}: readers need the port after it")
    host = f"[{store.host}]" if ":" in store.host else store.host
    return f"quack:{host}:{port}"


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Servers:
    """Both servers of one store."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, store: StoreConfig, tokens: Tokens
    ) -> None:
        if tokens.writer == tokens.reader:
            raise ConfigError("store.writer_token and store.reader_token must differ")
        self._connection = connection
        self._listen = (
            (address(store, "writer"), tokens.writer),
            (address(store, "reader"), tokens.reader),
        )

    def start(self) -> None:
        """Listen on both ports.

        Raises:
            PortTakenError: somebody else listens there.
            StoreError: Quack refuses; without the token in its message.
        """
        for place, token in self._listen:
            _check_free(place)
            try:
                self._connection.cursor().execute(
                    f"CALL quack_serve({literal(place)}, token => $token)", {"token": token}
                )
            except duckdb.Error as error:
                text = first_line(error).replace(token, "***")
                raise StoreError(f"The store cannot be served on {place}: {text}") from None

    def stop(self) -> None:
        """Stop listening; open connections end."""
        for place, _ in self._listen:
            self._connection.cursor().execute(f"CALL quack_stop({literal(place)})")

    def tend(self) -> bool:
        """Restart the servers when connections of dead clients have piled up; True if so."""
        limits = {"most": MOST_CONNECTIONS, "seconds": LONGEST_SECONDS}
        row = self._connection.cursor().execute(_CROWDED, limits).fetchone()
        if row is None or not row[0]:
            return False
        self.stop()
        self.start()
        return True


def _check_free(place: str) -> None:
    """Quack shares a port with whoever listens already, and half of the clients would be lost.

    Asking is better than binding: connections of a killed owner linger, and only Quack's own
    sockets may bind beside them.
    """
    host, _, port = place.removeprefix("quack:").rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=1).close()
    except OSError:
        return
    raise PortTakenError(
        f"The store cannot be served on {place}: the port is taken. Stop the program that listens "
        "there, or set store.port to another"
    )
