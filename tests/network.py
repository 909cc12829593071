"""Keeps tests on this machine: a connection to anywhere but loopback fails the test.

Downloads that a fixture needs once (jars into the shared cache) are let through explicitly:

    with network_guard.opened():
        ...
"""

from __future__ import annotations

import ipaddress
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


class NetworkGuard:
    """Watches every socket that Python code of this process connects."""

    def __init__(self) -> None:
        self._open = 0

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Let connections through while inside."""
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Put the guard in place of the connecting methods of `socket.socket`."""
        with pytest.MonkeyPatch.context() as patch:
            for name in ("connect", "connect_ex"):
                patch.setattr(socket.socket, name, self._guarded(getattr(socket.socket, name)))
            yield

    def _guarded(self, connect: Any) -> Any:
        def guarded(sock: socket.socket, address: Any) -> Any:
            if not self._open and not is_local(sock.family, address):
                # Not an OSError: code under test would take that for an engine that is down.
                pytest.fail(f"a test tried to connect to {address}; tests stay on loopback")
            return connect(sock, address)

        return guarded


def is_local(family: int, address: Any) -> bool:
    """Whether an address of a socket family is on this machine."""
    if family not in (socket.AF_INET, socket.AF_INET6):
        return True
    host = address[0]
    if host in ("localhost", ""):
        return True
    try:
        return ipaddress.ip_address(host.split("%")[0]).is_loopback
    except ValueError:
        return False
