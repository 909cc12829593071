"""The connection of a client, and waiting for something only as long as it is there."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from lakehouse_core.domain.errors import LakehouseError

if TYPE_CHECKING:
    from collections.abc import Awaitable

GONE = "The client hung up"
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Client:
    """A connection; `gone` is set when its other end is."""

    stream: asyncio.StreamReader
    writer: asyncio.StreamWriter
    gone: asyncio.Event

    async def present(self, work: Awaitable[_T]) -> _T:
        """Wait for something while the client is there.

        Raises:
            ConnectionError: it hung up.
        """
        task = asyncio.ensure_future(work)
        if task.done():
            return task.result()
        leaving = asyncio.ensure_future(self.gone.wait())
        try:
            await asyncio.wait({task, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise ConnectionResetError(GONE)
            return task.result()
        finally:
            leaving.cancel()
            if not task.done():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, LakehouseError):
                    await task
