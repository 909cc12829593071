"""Where deliveries wait to be written: those that come at once are written together.

Trino sends one event per request. While one group is on its way to the store, the next gathers, so
a busy desk writes few large batches and an idle one writes at once. A delivery is answered when its
rows are durable.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from contextlib import contextmanager
from typing import TYPE_CHECKING

import structlog

from lakehouse_core.domain.errors import StoreError, StoreUnavailableError
from lakehouse_core.gateway.intake import Delivery, Intake, Mapped, Verdict
from lakehouse_core.store.batch import conform

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

_log = structlog.get_logger(__name__)
GROUP_DELIVERIES = 5_000
GROUP_BYTES = 64 * 2**20
ANSWER_SECONDS = 30.0


class DeskFullError(StoreUnavailableError):
    """Raised when more is waiting than memory was set aside for."""


class Desk:
    """Takes deliveries of one kind; used from one event loop.

    `keep(table, rows)` makes rows durable, or raises a `StoreError`.
    """

    def __init__(
        self,
        intake: Intake,
        keep: Callable[[str, pa.Table], object],
        memory_bytes: int,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._intake = intake
        self._keep = keep
        self._memory_bytes = memory_bytes
        self._answer_seconds = answer_seconds
        self._held_bytes = 0
        self._waiting: deque[tuple[Delivery, asyncio.Future[Verdict]]] = deque()
        self._worker: asyncio.Task[None] | None = None

    @contextmanager
    def memory(self) -> Iterator[_Share]:
        """Room for one body, given back at the end."""
        share = _Share(self)
        try:
            yield share
        finally:
            self._held_bytes -= share.held

    async def take(self, delivery: Delivery) -> Verdict:
        """Write a delivery and say what became of it.

        Raises:
            StoreError: its rows are not durable; the sender should send it again.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Verdict] = loop.create_future()
        self._waiting.append((delivery, future))
        if self._worker is None:
            self._worker = loop.create_task(self._work())
        done, _ = await asyncio.wait({future}, timeout=self._answer_seconds)
        if not done:
            # It may still be written; sent again, it changes nothing.
            future.cancel()
            self.counts["unavailable"] += 1
            raise StoreUnavailableError(
                f"the store has not taken it for {self._answer_seconds:g} s"
            )
        return future.result()

    async def close(self) -> None:
        """Wait until what was taken is written."""
        if self._worker is not None:
            await self._worker

    async def _work(self) -> None:
        try:
            while group := self._next_group():
                deliveries = [delivery for delivery, _ in group]
                try:
                    verdicts = await asyncio.to_thread(self._write, deliveries)
                except StoreError as error:
                    self.counts["unavailable"] += len(group)
                    _answer(group, [error] * len(group))
                except Exception as error:  # noqa: BLE001 the senders must hear of it
                    _log.error("deliveries not written", deliveries=len(group), exc_info=error)
                    self.counts["unavailable"] += len(group)
                    _answer(group, [StoreError("it was not written; see the log")] * len(group))
                else:
                    self._count(verdicts)
                    _answer(group, verdicts)
        finally:
            self._worker = None

    def _next_group(self) -> list[tuple[Delivery, asyncio.Future[Verdict]]]:
        group: list[tuple[Delivery, asyncio.Future[Verdict]]] = []
        size = 0
        while self._waiting and len(group) < GROUP_DELIVERIES and size < GROUP_BYTES:
            delivery, future = self._waiting.popleft()
            if not future.cancelled():
                group.append((delivery, future))
                size += len(delivery.body)
        return group

    def _write(self, deliveries: Sequence[Delivery]) -> Sequence[Verdict]:
        try:
            mapped = self._mapped(deliveries)
        except Exception as error:  # noqa: BLE001 one that cannot be written stops no other
            if len(deliveries) == 1:
                return [_refusal(error)]
            # One of them spoils the batch of all.
            half = len(deliveries) // 2
            return [*self._write(deliveries[:half]), *self._write(deliveries[half:])]
        for table, rows in mapped.rows.items():
            self._keep(table, rows)
        return mapped.verdicts

    def _mapped(self, deliveries: Sequence[Delivery]) -> Mapped:
        """The rows of deliveries; raises when they fit no table."""
        mapped = self._intake.map(deliveries)
        if len(mapped.verdicts) != len(deliveries):
            raise ValueError(f"{len(deliveries)} deliveries, {len(mapped.verdicts)} verdicts")
        for table, rows in mapped.rows.items():
            conform(table, rows)
        return mapped

    def _count(self, verdicts: Sequence[Verdict]) -> None:
        for verdict in verdicts:
            self.counts["accepted"] += verdict.accepted
            self.counts["dead_letter"] += verdict.dead_letters
            self.counts["refused"] += verdict.refusal is not None

    def reserve(self, size: int) -> None:
        """Set memory aside.

        Raises:
            DeskFullError: too much is waiting.
        """
        if self._held_bytes + size > self._memory_bytes:
            self.counts["unavailable"] += 1
            raise DeskFullError(f"{self._held_bytes} bytes are waiting to be written")
        self._held_bytes += size


class _Share:
    """The memory of one body."""

    def __init__(self, desk: Desk) -> None:
        self.held = 0
        self._desk = desk

    def grow(self, size: int) -> None:
        """The body has got larger."""
        self._desk.reserve(size)
        self.held += size


def _refusal(error: Exception) -> Verdict:
    if isinstance(error, StoreError):
        return Verdict(refusal=str(error))
    _log.error("delivery not understood", error=f"{type(error).__name__}: {error}")
    return Verdict(refusal=f"no rows can be made of it ({type(error).__name__}); see the log")


def _answer(
    group: Sequence[tuple[Delivery, asyncio.Future[Verdict]]],
    outcomes: Sequence[Verdict | StoreError],
) -> None:
    for (_, future), outcome in zip(group, outcomes, strict=True):
        if future.done():
            continue
        if isinstance(outcome, StoreError):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
