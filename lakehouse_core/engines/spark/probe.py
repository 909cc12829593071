"""A cheap look at a Spark Connect server, with a time limit of its own."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import httpx

TIMEOUT_SECONDS = 3.0
_OPERATION_TAG = "SparkConnect_OperationTag_"


class Prober:
    """Asks for the version, and Spark's UI for what runs."""

    def __init__(self, host: str, port: int, ui_port: int) -> None:
        self._target = f"{host}:{port}"
        self._ui = f"http://{host}:{ui_port}/api/v1/applications"
        self._session_id = str(uuid4())
        self._channel: Any = None

    def version(self) -> tuple[str | None, str | None]:
        """The server's version, or what is wrong."""
        import grpc  # noqa: PLC0415 comes with the driver
        from pyspark.sql.connect import proto  # noqa: PLC0415 the driver is optional
        from pyspark.sql.connect.proto.base_pb2_grpc import (  # noqa: PLC0415 as above
            SparkConnectServiceStub,
        )

        if self._channel is None:
            # A server that comes back shall be seen soon: by default gRPC waits up to two minutes.
            options = [("grpc.max_reconnect_backoff_ms", 2_000)]
            self._channel = grpc.insecure_channel(self._target, options=options)
        request = proto.AnalyzePlanRequest(
            session_id=self._session_id,
            client_type="lakehelm-probe",
            user_context=proto.UserContext(user_id="lakehelm"),
            spark_version=proto.AnalyzePlanRequest.SparkVersion(),
        )
        try:
            stub: Any = SparkConnectServiceStub(self._channel)  # type: ignore[no-untyped-call] # generated
            answer = stub.AnalyzePlan(request, timeout=TIMEOUT_SECONDS)
        except grpc.RpcError as error:
            return None, f"Spark at {self._target} does not answer: {error.details()}"
        return str(answer.spark_version.version), None

    def running_queries(self) -> int | None:
        """How many Connect operations have jobs running; None when the UI does not say."""
        try:
            applications = httpx.get(self._ui, timeout=TIMEOUT_SECONDS).raise_for_status().json()
            jobs_url = f"{self._ui}/{applications[0]['id']}/jobs?status=running"
            jobs = httpx.get(jobs_url, timeout=TIMEOUT_SECONDS).raise_for_status().json()
            tags = {str(tag) for job in jobs for tag in job.get("jobTags") or ()}
        except (httpx.HTTPError, ValueError, LookupError, TypeError):
            return None
        return sum(tag.startswith(_OPERATION_TAG) for tag in tags)

    def close(self) -> None:
        """Release the connection."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None
