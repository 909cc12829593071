"""What the gateway does again and again beside the statements, each job in a thread of its own."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Job:
    """Work that blocks, and how long after its end it is done again."""

    name: str
    work: Callable[[], object]
    seconds: float


async def repeat(job: Job) -> None:
    """Do a job until cancelled; one that fails is told and tried again at its next turn."""
    while True:
        try:
            await asyncio.to_thread(job.work)
        except Exception as error:  # noqa: BLE001 whatever it was, statements go on
            _log.warning("upkeep failed", job=job.name, error=str(error), exc_info=error)
        await asyncio.sleep(job.seconds)
