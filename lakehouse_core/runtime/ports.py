"""Ports: which ones we need, whether they are free, and who has them."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil

from lakehouse_core.domain.errors import PortTakenError

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True, kw_only=True)
class PortUse:
    """A port one of our processes will listen on, and the configuration key that sets it.

    `offset` tells how far the port is from the key's value: some servers take the next one too.
    """

    process: str
    host: str
    port: int
    key: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that listens on a port."""

    pid: int
    name: str

    def __str__(self) -> str:
        return f"{self.name} (pid {self.pid})"


def is_free(host: str, port: int) -> bool:
    """Whether a server could listen there now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # As servers do: connections that are still winding down do not make a port taken.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def holder_of(port: int) -> Holder | None:
    """Who listens on the port, as far as this user may see."""
    try:
        connections = psutil.net_connections(kind="tcp")
    except psutil.AccessDenied:  # some systems show other users' sockets to root only
        return None
    for connection in connections:
        if connection.status != psutil.CONN_LISTEN or connection.pid is None:
            continue
        if not connection.laddr or connection.laddr.port != port:
            continue
        try:
            return Holder(connection.pid, psutil.Process(connection.pid).name())
        except psutil.NoSuchProcess:
            continue
    return None


def listens(pid: int, port: int) -> bool:
    """Whether the process, or a descendant of it, listens on the port.

    A port that answers proves nothing: another program may have taken it a moment before us.
    """
    try:
        root = psutil.Process(pid)
        family = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return False
    for process in family:
        try:
            connections = process.net_connections(kind="tcp")
        except psutil.NoSuchProcess:
            continue
        except psutil.AccessDenied:
            return True  # not ours to see; the answer on the port has to do
        if any(c.status == psutil.CONN_LISTEN and c.laddr.port == port for c in connections):
            return True
    return False


def require_free(uses: Iterable[PortUse]) -> None:
    """Refuse to start when a port is taken; names all of them at once.

    Raises:
        PortTakenError: with the port, who has it, and the key to change.
    """
    taken = [use for use in uses if not is_free(use.host, use.port)]
    if taken:
        raise PortTakenError("\n".join(describe_taken(use) for use in taken))


def describe_taken(use: PortUse) -> str:
    """What to tell a person about a taken port."""
    holder = holder_of(use.port)
    who = f"by {holder}" if holder else "by another program"
    return (
        f"Port {use.port} for {use.process} is taken {who}. "
        f"Stop that program, or set {use.key} to a free port "
        f"(LAKEHELM__{use.key.replace('.', '__').upper()}=… does it for one start)."
    )
