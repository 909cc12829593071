"""Athena on loopback: moto's server, with what moto's Athena lacks.

moto knows no BatchGetQueryExecution, no pages and no figures of a query: they are added to its own
backend and answered in the form of AWS's service model, so that boto3 parses real HTTP answers.
"""

from __future__ import annotations

import base64
import copy
import json
import threading
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moto.athena.models import AthenaBackend, Execution, athena_backends
from moto.athena.responses import AthenaResponse
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

from tests.factories import NOW

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

REGION = "eu-central-1"
ACCOUNT = "123456789012"
FIXTURES = Path(__file__).parents[2] / "integration" / "fixtures" / "athena"
_FINISHED = json.loads((FIXTURES / "succeeded.json").read_text())["QueryExecution"]


class Answer(Exception):  # noqa: N818 not an error: what a fault answers instead of moto
    """Raised by a fault to answer in moto's place."""

    def __init__(self, status: int, body: bytes | dict[str, Any]) -> None:
        super().__init__(status)
        self.status = status
        self.body = json.dumps(body).encode() if isinstance(body, dict) else body


def refusal(status: int, code: str, message: str = "") -> Answer:
    """An error as AWS's JSON protocol writes it."""
    return Answer(status, {"__type": code, "message": message})


class Cloud:
    """A region with Athena in it, over HTTP; a fault is told the operation and its arguments."""

    def __init__(self) -> None:
        athena_backends.reset()
        _extend_moto()
        self.backend: AthenaBackend = athena_backends[ACCOUNT][REGION]
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.fault: Callable[[str, dict[str, Any]], None] | None = None
        self.release = threading.Event()  # lets a hanging answer go
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._server = make_server(
            "127.0.0.1", 0, self._serve, threaded=True, request_handler=_Silent
        )
        self._server.daemon_threads = True  # type: ignore[attr-defined]
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self.release.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def workgroup(self, name: str) -> None:
        """Make a workgroup; `primary` is there from the start."""
        self.backend.create_work_group(name, {}, "", [])

    def add(
        self, query_id: str, at: datetime = NOW, workgroup: str = "primary", **changes: Any
    ) -> dict[str, Any]:
        """Remember a query like the recorded one; `changes` are fields of its payload."""
        payload = copy.deepcopy(_FINISHED)
        payload |= {"QueryExecutionId": query_id, "WorkGroup": workgroup}
        stamp = at.timestamp()
        payload["Status"] |= {"SubmissionDateTime": stamp, "CompletionDateTime": stamp + 1}
        payload |= changes
        group = self.backend.work_groups[workgroup]
        execution = Execution(payload["Query"], "", {}, group, None)
        execution.id = query_id
        execution.payload = payload  # type: ignore[attr-defined]
        # Athena lists what came last first, whatever its clock says.
        self.backend.executions = {query_id: execution, **self.backend.executions}
        return payload

    def forget(self, *ids: str) -> None:
        """Drop queries from the history; all of them when none is named."""
        for query_id in ids or list(self.backend.executions):
            del self.backend.executions[query_id]

    def calls(self, operation: str) -> list[dict[str, Any]]:
        """The arguments of the calls of one operation."""
        return [arguments for name, arguments in self.asked if name == operation]

    def _serve(self, environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = BytesIO(body)
        operation = environ.get("HTTP_X_AMZ_TARGET", "").rpartition(".")[2]
        arguments = json.loads(body or b"{}")
        self.asked.append((operation, arguments))
        try:
            if self.fault is not None:
                self.fault(operation, arguments)
        except Answer as answer:
            start(f"{answer.status} fault", [("Content-Length", str(len(answer.body)))])
            return [answer.body]
        found: Iterable[bytes] = self._moto(environ, start)
        return found


class _Silent(WSGIRequestHandler):
    def log(self, *_: object) -> None:
        pass


def _extend_moto() -> None:
    AthenaResponse.list_query_executions = _list
    AthenaResponse.get_query_execution = _get
    AthenaResponse.batch_get_query_execution = _batch_get  # type: ignore[attr-defined]  # new


def _list(self: AthenaResponse) -> Any:
    group = self._get_param("WorkGroup")
    if group not in self.athena_backend.work_groups:
        return self.error(f"WorkGroup {group} is not found.", 400)
    ids = list(self.athena_backend.list_query_executions(group))
    token = self._get_param("NextToken")
    start = 0
    if token:
        before = base64.b64decode(token).decode()
        if before not in ids:
            return self.error("Invalid pagination token.", 400)
        start = ids.index(before) + 1
    end = start + int(self._get_param("MaxResults") or 50)
    answer: dict[str, Any] = {"QueryExecutionIds": ids[start:end]}
    if end < len(ids):
        answer["NextToken"] = base64.b64encode(ids[end - 1].encode()).decode()
    return json.dumps(answer)


def _get(self: AthenaResponse) -> Any:
    execution = self.athena_backend.executions.get(self._get_param("QueryExecutionId"))
    if execution is None:
        return self.error("QueryExecution was not found", 400)
    return json.dumps({"QueryExecution": execution.payload})  # type: ignore[attr-defined]


def _batch_get(self: AthenaResponse) -> Any:
    ids = self._get_param("QueryExecutionIds")
    if len(ids) > 50:
        return self.error("at most 50 ids", 400)
    known = self.athena_backend.executions
    missing = [
        {"QueryExecutionId": i, "ErrorCode": "INVALID_INPUT", "ErrorMessage": "was not found"}
        for i in ids
        if i not in known
    ]
    return json.dumps(
        {
            "QueryExecutions": [known[i].payload for i in ids if i in known],  # type: ignore[attr-defined]
            "UnprocessedQueryExecutionIds": missing,
        }
    )
