"""One session with Snowflake: bound parameters in, Arrow out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from collectors.snowflake.faults import translated
from lakehouse_core.domain.errors import ConfigError, NotInstalledError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    import pyarrow as pa

    from collectors.snowflake.config import Credentials, SnowflakeSettings


class SnowflakeSession:
    """Opened for one pull and closed after it, so that the warehouse can go to sleep."""

    def __init__(self, settings: SnowflakeSettings) -> None:
        connect = _connector()
        self._settings = settings
        with translated(settings, f"signing in as {settings.who}"):
            self._connection = connect(**_arguments(settings))

    def __enter__(self) -> SnowflakeSession:
        return self

    def __exit__(self, *_: object) -> None:
        with translated(self._settings, "signing out"):
            self._connection.close(retry=False)

    def batches(self, doing: str, sql: str, *times: datetime) -> Iterator[pa.Table]:
        """The rows of a statement as they come; `times` are bound to its question marks.

        Raises:
            UnreadableViewError: it reads what is not there for this role.
            SourceUnavailableError: Snowflake does not answer, or not in time.
            SourceError: it refuses us.
        """
        with translated(self._settings, doing), self._connection.cursor() as cursor:
            cursor.execute(sql, [("TIMESTAMP_LTZ", time) for time in times])
            for table in cursor.fetch_arrow_batches():
                if table.num_rows:
                    yield table


def _connector() -> Any:
    try:
        from snowflake.connector import connect  # noqa: PLC0415 an extra: not everybody has it
    except ImportError as error:
        raise NotInstalledError(
            "reading Snowflake's history needs its connector; install it with "
            "`pip install 'lakehelm[snowflake]'`"
        ) from error
    return connect


def _arguments(settings: SnowflakeSettings) -> dict[str, Any]:
    seconds = max(1, int(settings.login_timeout.total_seconds()))
    given: dict[str, Any] = {
        "account": settings.account,
        "user": settings.user,
        "host": settings.host,
        "port": settings.port,
        "protocol": settings.scheme,
        "role": settings.role,
        "warehouse": settings.warehouse,
        "paramstyle": "qmark",
        "login_timeout": seconds,
        "socket_timeout": seconds,
        "network_timeout": max(1, int(settings.statement_timeout.total_seconds())),
        "application": "Lakehelm",
        # Else it asks the metadata services of three clouds where it runs.
        "platform_detection_timeout_seconds": 0.0,
        "session_parameters": {
            "TIMEZONE": "UTC",
            "QUERY_TAG": json.dumps({"app": "lakehelm"}),
            "STATEMENT_TIMEOUT_IN_SECONDS": int(settings.statement_timeout.total_seconds()),
            "CLIENT_TELEMETRY_ENABLED": False,
        },
        **_secrets(settings.credentials, settings),
    }
    return {name: value for name, value in given.items() if value is not None}


def _secrets(credentials: Credentials, settings: SnowflakeSettings) -> dict[str, Any]:
    if credentials.private_key is not None:
        return {"private_key": _der(credentials.private_key, credentials.passphrase, settings)}
    if credentials.oauth_token is not None:
        return {"authenticator": "oauth", "token": credentials.oauth_token}
    return {"password": credentials.password}


def _der(pem: str, passphrase: str | None, settings: SnowflakeSettings) -> bytes:
    """The key in the form the connector takes; what is wrong with it is told without it."""
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 the connector's own

    try:
        key = serialization.load_pem_private_key(
            pem.encode(), passphrase.encode() if passphrase else None
        )
    except (ValueError, TypeError) as error:
        raise ConfigError(
            f"engine {settings.engine_id}: private_key is no PEM key that its passphrase opens "
            f"({type(error).__name__})"
        ) from None
    return key.private_bytes(
        serialization.Encoding.DER,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
