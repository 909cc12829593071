"""Spark Connect sessions, one per user and source, and what each request of theirs carries.

How a statement appears in Spark's event log (`SparkListenerConnectOperationStarted` and its kin):

| field | what we put there |
|---|---|
| `userId` | `Statement.user` |
| `sparkSessionTags` | `Statement.tags` (`;` for `,`), and `lakehelm-gateway-id:<gateway_id>` |
| `operationId` | chosen by us; `Result.query_id` is one of them |
| `client_type` in the details of the SQL execution | `Statement.source`, then Spark's own words |
| `statementText` | the request as protobuf text, with the SQL inside |
| `jobTag` | ends with the operation id; the jobs have it among `spark.job.tags` |

One statement makes two operations. The first (a command) parses the statement and runs it when it
writes. The second fetches the rows: of a query it is the one that does the work, of a command it
reads back a local relation. `Result.query_id` is the operation that does the work; when the first
fails, its own.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import uuid4

from lakehouse_core.domain.errors import QueryCancelledError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GATEWAY_TAG = "lakehelm-gateway-id:"
MAX_SESSIONS = 32
_NOISY_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_READS_BACK = frozenset(
    {"local_relation", "cached_local_relation", "chunked_cached_local_relation"}
)


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose session it is."""

    user: str
    source: str


@dataclass(slots=True)
class Operations:
    """The operations one statement made, in order; filled in while it runs."""

    ids: list[str] = field(default_factory=list)
    working: str | None = None
    is_cancelled: bool = False  # set by another thread; no further operation is started then

    @property
    def query_id(self) -> str | None:
        """The operation that did, or failed to do, the work."""
        return self.working or (self.ids[0] if self.ids else None)


class Sessions:
    """Opens sessions when they are needed and keeps the latest of them."""

    def __init__(self, host: str, port: int) -> None:
        self._address = f"sc://{host}:{port}"
        self._open: OrderedDict[Caller, Any] = OrderedDict()
        self._lock = threading.Lock()
        self._thread = threading.local()

    def get(self, caller: Caller) -> Any:
        """The caller's session; nothing is sent until it is used."""
        with self._lock:
            session = self._open.get(caller)
            if session is None or session.is_stopped:
                session = self._open[caller] = self._new(caller)
            self._open.move_to_end(caller)
            surplus = self._open.popitem(last=False)[1] if len(self._open) > MAX_SESSIONS else None
        if surplus is not None:
            close_session(surplus)
        return session

    def drop(self, caller: Caller, session: Any) -> None:
        """Forget a session that the server does not know any more."""
        with self._lock:
            if self._open.get(caller) is session:
                del self._open[caller]
        close_session(session, release=False)

    def close(self) -> None:
        """Close all of them."""
        with self._lock:
            sessions = list(self._open.values())
            self._open.clear()
        for session in sessions:
            close_session(session)

    @contextlib.contextmanager
    def recording(self, operations: Operations) -> Iterator[None]:
        """Note the operations that this thread starts meanwhile."""
        self._thread.operations = operations
        try:
            yield
        finally:
            self._thread.operations = None

    def _new(self, caller: Caller) -> Any:
        from pyspark.logger import PySparkLogger  # noqa: PLC0415 heavy, and optional

        # Each failed statement would print its stack trace; it is raised to the caller anyway.
        for name in _NOISY_LOGGERS:
            PySparkLogger.getLogger(name).disabled = True
        url = (
            f"{self._address}/;user_id={quote(caller.user, safe='')}"
            f";user_agent={quote(caller.source, safe='')}"
        )
        session = session_class()(connection=url, hook_factories=[self._hook_factory()])
        # By default a client knocks at a dead server for ten minutes. Whoever called us knows
        # better whether to wait, to go elsewhere or to give up.
        session.client.set_retry_policies([])
        # Nor shall it send a command of its own, unasked, when this process ends.
        atexit.unregister(session.client._cleanup_ml_cache)
        return session

    def _hook_factory(self) -> Callable[[Any], Any]:
        from pyspark.sql.connect.session import SparkSession  # noqa: PLC0415 as above

        thread = self._thread

        class NoteOperations(SparkSession.Hook):
            """Gives each operation its id and notes it."""

            def on_execute_plan(self, request: Any) -> Any:
                request.operation_id = str(uuid4())
                operations: Operations | None = getattr(thread, "operations", None)
                if operations is not None:
                    if operations.is_cancelled:
                        raise QueryCancelledError("The query was cancelled")
                    operations.ids.append(request.operation_id)
                    if _does_work(request.plan):
                        operations.working = request.operation_id
                return request

        return lambda _session: NoteOperations()


@functools.cache
def session_class() -> Any:
    """The driver's session, less what it does when it is collected: `close_session` does that.

    The driver would close it once more then, under a lock of its class. The collector runs in any
    thread at any time: also in one that is being started by another that holds this very lock, and
    waits for it for ever.
    """
    from pyspark.sql.connect.session import SparkSession  # noqa: PLC0415 heavy, and optional

    class Session(SparkSession):
        def __del__(self) -> None:
            pass

    return Session


def close_session(session: Any, *, release: bool = True) -> None:
    """Close a session; the server, if it is there, forgets it at once when told to."""
    session.release_session_on_close = release
    session.stop()


def _does_work(plan: Any) -> bool:
    """Whether an operation fetches rows that are not those a command has left behind."""
    if plan.WhichOneof("op_type") != "root":
        return False
    return plan.root.WhichOneof("rel_type") not in _READS_BACK
