"""Calls that may never return, with a limit.

Quack waits for an answer without a limit, and nothing interrupts a thread that waits in a socket.
So the call runs in a thread of its own, which is left behind when it takes too long.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_LEFT_BEHIND = 8

T = TypeVar("T")


class _Call(Generic[T]):
    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self.result: T | None = None
        self.error: BaseException | None = None
        # A daemon: a process may end although its owner hangs.
        self.thread = threading.Thread(target=self._run, name="store-call", daemon=True)

    def _run(self) -> None:
        try:
            self.result = self._work()
        except BaseException as error:  # noqa: BLE001 raised again in the caller's thread
            self.error = error


class Patience:
    """Runs calls with a limit; refuses more once too many were left behind."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._left_behind: list[threading.Thread] = []

    def call(self, work: Callable[[], T]) -> T:
        """The result of `work`.

        Raises:
            TimeoutError: it took too long, or too many earlier calls still do.
        """
        self._left_behind = [thread for thread in self._left_behind if thread.is_alive()]
        if len(self._left_behind) >= _MOST_LEFT_BEHIND:
            raise TimeoutError(f"{len(self._left_behind)} earlier questions are unanswered")
        call = _Call(work)
        call.thread.start()
        call.thread.join(self.seconds)
        if call.thread.is_alive():
            self._left_behind.append(call.thread)
            raise TimeoutError(f"no answer within {self.seconds:.0f} s")
        if call.error is not None:
            raise call.error
        return call.result  # type: ignore[return-value]  # set when there is no error
