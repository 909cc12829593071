"""What a session keeps under names: portals of the extended protocol and cursors of SQL.

PostgreSQL keeps both in one place: a cursor can be executed like a portal, and a portal fetched
from like a cursor. They end with their transaction, or with Sync outside of one, unless held.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lakehouse_core.domain.errors import QueryFailedError

if TYPE_CHECKING:
    from lakehouse_core.gateway.postgres.results import Rows
    from lakehouse_core.sql.postgres.cursors import Close, Declare
    from lakehouse_core.sql.postgres.statements import Prepared


@dataclass(slots=True)
class Portal:
    """A statement with its parameters; its rows once it runs."""

    statement: Prepared
    formats: tuple[int, ...]
    rows: Rows | None = None
    is_held: bool = False  # it outlives its transaction


class Portals:
    """The portals and cursors of one session."""

    def __init__(self, running: set[Rows]) -> None:
        """Keep portals.

        Args:
            running: the rows of the session that an engine works on; closed ones leave it.
        """
        self._running = running
        self._named: dict[str, Portal] = {}

    async def bind(self, name: str, portal: Portal) -> None:
        """Keep a portal; the one that had its name is closed."""
        await self.close(name)
        self._named[name] = portal

    def declare(self, cursor: Declare, statement: Prepared, *, is_active: bool) -> Portal:
        """The portal of a cursor to be; `keep` it when it runs.

        Raises:
            QueryFailedError: it is no query that reads, its name is taken, or no transaction is
                open and it is not held.
        """
        if not is_active and not cursor.is_held:
            raise QueryFailedError(
                "DECLARE CURSOR can only be used in transaction blocks", code="25P01"
            )
        if cursor.name in self._named:
            raise QueryFailedError(f'cursor "{cursor.name}" already exists', code="42P03")
        if not statement.is_reading:
            raise QueryFailedError("a cursor is for a query that reads", code="42601")
        formats = (1,) if cursor.is_binary else ()
        return Portal(replace(statement, cursor=None), formats, is_held=cursor.is_held)

    def keep(self, name: str, portal: Portal) -> None:
        """Keep a cursor under a name that is free."""
        self._named[name] = portal

    def portal(self, name: str) -> Portal:
        """A portal by its name.

        Raises:
            QueryFailedError: there is none.
        """
        return self._found(name, "portal")

    def cursor(self, name: str) -> Portal:
        """A cursor by its name.

        Raises:
            QueryFailedError: there is none.
        """
        return self._found(name, "cursor")

    def _found(self, name: str, what: str) -> Portal:
        found = self._named.get(name)
        if found is None:
            raise QueryFailedError(f'{what} "{name}" does not exist', code="34000")
        return found

    async def close(self, name: str) -> None:
        """Close a portal, if there is one of the name."""
        portal = self._named.pop(name, None)
        if portal is not None and portal.rows is not None:
            await portal.rows.cancel("The portal was closed")
            self._running.discard(portal.rows)

    async def close_cursors(self, wanted: Close) -> None:
        """Close one cursor, or all.

        Raises:
            QueryFailedError: there is none of the name.
        """
        if wanted.name is not None:
            self.cursor(wanted.name)
        for name in [wanted.name] if wanted.name is not None else list(self._named):
            if name:  # the unnamed one is the statement that is being answered
                await self.close(name)

    async def end(self) -> None:
        """Close what does not outlive its transaction."""
        for name, portal in list(self._named.items()):
            if not portal.is_held:
                await self.close(name)
