"""What Trino's REST API tells beside the statements: state, version, load; and how it cancels."""

from __future__ import annotations

from typing import Any

import httpx

TIMEOUT_SECONDS = 3.0
_RUNNING_STATES = ("PLANNING", "STARTING", "RUNNING", "FINISHING")
_QUEUED_STATES = ("QUEUED", "WAITING_FOR_RESOURCES", "DISPATCHING")
_FINAL_STATES = frozenset({"FINISHED", "FAILED"})


class Rest:
    """A client of one coordinator; raises `httpx.HTTPError` and `ValueError`."""

    def __init__(self, url: str, user: str, password: str | None) -> None:
        self._client = httpx.Client(
            base_url=url,
            headers={"X-Trino-User": user, "X-Trino-Source": "lakehelm"},
            auth=(user, password) if password else None,
            timeout=TIMEOUT_SECONDS,
            trust_env=False,
        )

    def info(self) -> tuple[str, bool]:
        """The version, and whether the server is still starting."""
        info = self._client.get("/v1/info").raise_for_status().json()
        return str(info["nodeVersion"]["version"]), bool(info.get("starting"))

    def load(self) -> tuple[int, int]:
        """How many queries run and how many wait."""
        return self._count(_RUNNING_STATES), self._count(_QUEUED_STATES)

    def cancel(self, query_id: str) -> bool:
        """Stop a query; False when it is over or not known."""
        answer = self._client.get(f"/v1/query/{query_id}", params={"pruned": "true"})
        if answer.status_code in (404, 410):
            return False
        state: Any = answer.raise_for_status().json().get("state")
        if state in _FINAL_STATES:
            return False
        self._client.delete(f"/v1/query/{query_id}").raise_for_status()
        return True

    def close(self) -> None:
        """Release connections."""
        self._client.close()

    def _count(self, states: tuple[str, ...]) -> int:
        answers = (self._client.get("/v1/query", params={"state": state}) for state in states)
        return sum(len(answer.raise_for_status().json()) for answer in answers)
