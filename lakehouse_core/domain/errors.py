"""Every error of ours: what happened, to which object, what to do.

Retry code looks at the two mix-ins only (`Transient`, `Terminal`), never at a message.
"""

from __future__ import annotations


class LakehouseError(Exception):
    """Root of all errors raised on purpose."""


class Transient:
    """Mix-in: the same call may succeed later."""


class Terminal:
    """Mix-in: the same call will fail again until somebody changes something."""


class ConfigError(Terminal, LakehouseError):
    """Raised when the configuration cannot be read or is wrong."""


class SourceError(LakehouseError):
    """Raised when a source of telemetry cannot be read."""


class SourceUnavailableError(Transient, SourceError):
    """Raised when a source does not answer, answers too late, or asks us to slow down."""


class StoreError(LakehouseError):
    """Raised when the telemetry store refuses or cannot do what was asked."""


class StoreUnavailableError(Transient, StoreError):
    """Raised when the owner of the store cannot be reached."""


class StoreFullError(Transient, StoreError):
    """Raised when the disk of the store has no space left; nothing of the write was kept."""


class StoreLockedError(Terminal, StoreError):
    """Raised when another process holds the store file."""


class StoreCorruptError(Terminal, StoreError):
    """Raised when the store file cannot be read as a DuckDB database."""


class StoreTooNewError(Terminal, StoreError):
    """Raised when the store was written by a newer Lakehelm than this one."""


class CatalogError(LakehouseError):
    """Raised when the Iceberg catalog or a metadata file cannot be read."""


class CatalogUnavailableError(Transient, CatalogError):
    """Raised when the catalog does not answer: not there yet, locked, or out of reach."""


class CatalogRefusedError(Terminal, CatalogError):
    """Raised when the catalog does not know us, or does not let us read what was asked."""


class TableGoneError(Terminal, CatalogError):
    """Raised when a table was dropped or renamed between listing and reading it."""


class MetadataUnreadableError(Terminal, CatalogError):
    """Raised when a metadata file, manifest list or manifest is missing or broken."""


class MaintenanceError(LakehouseError):
    """Raised when a maintenance action cannot be planned, run or recorded."""


class EngineError(LakehouseError):
    """Raised when an engine refuses or fails a statement.

    Attributes:
        code: the engine's own code of the error, as it names it.
        query_id: the engine's id of the query, when it had one already.
        position: line and column, from 1, of the place in the statement it is about.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        query_id: str | None = None,
        position: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.query_id = query_id
        self.position = position


class EngineUnavailableError(Transient, EngineError):
    """Raised when an engine cannot be reached or died while working."""


class QueryFailedError(Terminal, EngineError):
    """Raised when the engine understood the statement and refused or failed it."""


class QueryCancelledError(QueryFailedError):
    """Raised when a statement was stopped because somebody asked for it."""


class NotInstalledError(Terminal, LakehouseError):
    """Raised when something on this machine is missing; says what to install."""


class PortTakenError(Terminal, LakehouseError):
    """Raised when a port that one of our processes needs is in use."""


class FilterError(Terminal, LakehouseError):
    """Raised when a window or another filter of a view cannot be understood."""


class NotFoundError(Terminal, LakehouseError):
    """Raised when a table, query or engine asked for by name is not in the store."""


class EvaluationDataError(Terminal, LakehouseError):
    """Raised when a file of an offline evaluation is missing or wrong; names column and row."""


class ModelUnreadableError(Terminal, LakehouseError):
    """Raised when a stored routing model is missing, broken or of another version."""
