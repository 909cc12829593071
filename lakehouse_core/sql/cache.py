"""A bounded memory, safe to share between threads."""

from __future__ import annotations

from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Cache(Generic[K, V]):
    """Forgets the oldest tenth when full.

    Reading takes no lock and keeps no order: the hot path reads far more than it writes, and a
    template that matters is back after one parse.
    """

    def __init__(self, limit: int) -> None:
        self._limit = max(limit, 1)
        self._entries: dict[K, V] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        """What is remembered under a key."""
        return self._entries.get(key)

    def put(self, key: K, value: V) -> None:
        """Remember, and forget if there is no room."""
        with self._lock:
            if key not in self._entries and len(self._entries) >= self._limit:
                for old in list(self._entries)[: max(self._limit // 10, 1)]:
                    del self._entries[old]
            self._entries[key] = value
