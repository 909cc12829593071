"""What can go wrong around a run."""

from __future__ import annotations

from lakehouse_core.domain.errors import LakehouseError, Terminal, Transient


class PipelineError(Terminal, LakehouseError):
    """Raised when a run failed; says at which stage, why, and where the log is."""


class PipelineBusyError(Transient, LakehouseError):
    """Raised when another run of the pipeline is under way."""


class PipelineStoppedError(Transient, LakehouseError):
    """Raised when a run was ended before its time: too slow, or this process is stopping."""
