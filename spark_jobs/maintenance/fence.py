"""Whether a job may still change its table: the lease in force, read from the file that tells it.

Whoever started the job renews its lease and writes it down each time. A starter that was paused or
died renews nothing: its lease runs out, somebody else gets a greater token, and what this job would
commit then is refused here.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_jobs.maintenance.outcome import LeaseLostError

if TYPE_CHECKING:
    from spark_jobs.maintenance.plan import ActionRequest


class Fence:
    """Asked right before every change of a table."""

    def __init__(self, request: ActionRequest) -> None:
        self._table = request.plan.table_id
        self._token = request.lease_token
        self._file = None if request.lease_file is None else Path(request.lease_file)

    def check(self) -> None:
        """Go on, or not.

        Raises:
            LeaseLostError: the lease ran out, was taken over, or cannot be read.
        """
        if self._file is None:
            return
        lease = self._read(self._file)
        if lease["token"] != self._token:
            raise LeaseLostError(
                f"The lease of {self._table} was taken over: token {lease['token']} is in force, "
                f"this job has {self._token}; it commits nothing"
            )
        ended = lease["released_at"] or lease["expires_at"]
        if lease["released_at"] or datetime.now(UTC) >= datetime.fromisoformat(ended):
            raise LeaseLostError(
                f"The lease of {self._table} ended {ended} (token {self._token}): whoever started "
                "this job was paused or is gone; it commits nothing"
            )

    def _read(self, file: Path) -> dict[str, Any]:
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
            return {name: found[name] for name in ("token", "expires_at", "released_at")}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise LeaseLostError(
                f"Nobody can say whether the lease of {self._table} holds: {file} cannot be read "
                f"({error!r}); nothing is committed"
            ) from error
