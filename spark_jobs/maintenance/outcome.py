"""How an action can end, and what an error of Spark or Iceberg stands for."""

from __future__ import annotations

from typing import Any, Literal

from spark_jobs.pipeline.commit import conflict_in

Outcome = Literal["done", "nothing", "conflict", "refused", "failed", "stopped", "lost", "unknown"]

UNKNOWN_COMMIT = ("CommitStateUnknownException",)
NO_TABLE = ("NoSuchTableException", "TABLE_OR_VIEW_NOT_FOUND", "NoSuchIcebergTableException")
# A catalog that cannot be reached, or that is too busy to say anything.
SILENCE = (
    "SQLITE_BUSY",
    "UncheckedSQLException",
    "ServiceFailureException",
    "ServiceUnavailableException",
    "java.net.ConnectException",
    "java.net.SocketTimeoutException",
    "java.net.UnknownHostException",
    "NoHttpResponseException",
)
# Said by Iceberg as a plain IllegalArgumentException: a tag was set after we had looked.
REFERENCED = "Still referenced by refs"
TRACEBACK = "PythonException: Traceback (most recent call last):"


PACKAGE = "org.apache.iceberg.exceptions."


class EndedError(Exception):
    """Raised to end an action; `outcome` says how."""

    outcome: Outcome = "failed"


class RefusedError(EndedError):
    """Raised when a safety rule forbids the action; says which."""

    outcome: Outcome = "refused"


class ConflictError(EndedError):
    """Raised when other writers were always faster; names the conflict."""

    outcome: Outcome = "conflict"


class StoppedError(EndedError):
    """Raised when somebody asked for the run to end."""

    outcome: Outcome = "stopped"


class LeaseLostError(EndedError):
    """Raised when somebody else may change the table now, or nobody promised it to this job."""

    outcome: Outcome = "lost"


class UnknownCommitError(EndedError):
    """Raised when nobody can say whether a commit happened; nothing was deleted."""

    outcome: Outcome = "unknown"


class VerificationError(EndedError):
    """Raised when the rows after a rewrite are not those before."""


def is_unknown_commit(error: BaseException) -> bool:
    """Whether an error leaves open if the commit happened."""
    return any(name in str(error) for name in UNKNOWN_COMMIT)


def is_no_table(error: BaseException) -> bool:
    """Whether an error says that the table is not there."""
    return any(name in str(error) for name in NO_TABLE)


def is_catalog_silent(error: BaseException) -> bool:
    """Whether the catalog did not answer: nobody knows what it did, and asking again may help."""
    return any(name in str(error) for name in SILENCE)


def conflict_of(error: BaseException) -> str | None:
    """The conflict with another writer that an error stands for, in one line."""
    text = str(error)
    if REFERENCED in text:
        return next(line.strip() for line in text.splitlines() if REFERENCED in line)[:300]
    found = conflict_in(error)
    return None if found is None else found.lstrip(": ").replace(PACKAGE, "")


def first_line(error: BaseException) -> str:
    """What an error says before its stack trace; of an error in Java the innermost cause."""
    cause: Any = getattr(error, "java_exception", None)
    text = str(error) if cause is None else _innermost(cause)
    if (raised := _raised_in_a_task(str(error))) is not None:
        return raised[:1_000]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:1_000] if lines else type(error).__name__


def _raised_in_a_task(text: str) -> str | None:
    """What a task of ours raised, which Spark tells as a whole traceback; None: no task did."""
    _, begun, rest = text.partition(TRACEBACK)
    lines = rest.splitlines()[1:] if begun else []
    return next((line for line in lines if line.strip() and not line[0].isspace()), None)


def _innermost(cause: Any) -> str:
    text = str(cause.toString())
    while (deeper := cause.getCause()) is not None:
        cause = deeper
        text = f"{text.splitlines()[0]}: {cause.toString()}" if len(text) < 200 else text
    return text
