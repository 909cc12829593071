"""What Snowflake and its connector raise → errors of ours that say what to do."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from lakehouse_core.domain.errors import SourceError, SourceUnavailableError, Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collectors.snowflake.config import SnowflakeSettings

_MAX_MESSAGE = 200
_NOT_THERE = frozenset({904, 2003, 2043, 3001})  # or not for this role: Snowflake tells alike
_NO_WAREHOUSE = frozenset({606, 57014, 90073, 90082})
_TOO_LONG = frozenset({604, 630})
_EXPIRED = frozenset({390_110, 390_111, 390_112, 390_114, 390_115, 390_195, 390_303, 390_318})
_LOGIN = frozenset({250_001, *range(390_000, 391_000)})
_HTTP = frozenset({290_429, *range(290_500, 290_600)})
_BROKEN_LINE = (
    "OperationalError",
    "InterfaceError",
    "InternalServerError",
    "BadGatewayError",
    "ServiceUnavailableError",
    "GatewayTimeoutError",
    "TooManyRequests",
    "OtherHTTPRetryableError",
    "RequestTimeoutError",
)


class UnreadableViewError(Terminal, SourceError):
    """Raised when one view is not there for this role; the others may be."""


# What to raise and what to say, by what went wrong.
_NOT_READABLE = (
    UnreadableViewError,
    "it, or a column of it, is not there for {who}; grant IMPORTED PRIVILEGES on {database}",
)
_WITHOUT_WAREHOUSE = (
    SourceError,
    "no warehouse runs it; set warehouse of the engine to one that runs and {who} may use",
)
_STOPPED = (
    SourceUnavailableError,
    "stopped after {seconds} s; use a larger warehouse or a longer collect timeout",
)
_HAS_EXPIRED = (
    SourceError,
    "the credentials of {who} have expired; renew the secret that the engine names",
)
_NOT_ACCEPTED = (
    SourceError,
    "the credentials of {who} are not accepted; check account, user, role and secret of the engine",
)
_DOES_NOT_ANSWER = (
    SourceUnavailableError,
    "it does not answer; check account and host of the engine and the network; tried again later",
)


@contextmanager
def translated(settings: SnowflakeSettings, doing: str) -> Iterator[None]:
    """Let nothing but errors of ours out.

    Args:
        settings: where was asked, as whom.
        doing: what was done to what, e.g. "reading QUERY_HISTORY".
    """
    from snowflake.connector import errors  # noqa: PLC0415 the driver stays in its adapter

    try:
        yield
    except errors.Error as error:
        raise _ours(error, settings, doing) from error
    except OSError as error:
        raise SourceUnavailableError(
            f"{settings.url}: {doing} failed ({type(error).__name__}): {_DOES_NOT_ANSWER[1]}"
        ) from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        # The connector checks no answer: what it misses in one, or Arrow in its rows, shows here.
        raise SourceError(
            f"{settings.url}: {doing} failed ({type(error).__name__}): the answer is not "
            "Snowflake's; is host the right one?"
        ) from error


def _ours(error: Exception, settings: SnowflakeSettings, doing: str) -> SourceError:
    number = getattr(error, "errno", None) or 0
    kind, remedy = _judge(error, number)
    said = remedy.format(
        who=settings.who,
        database=settings.database,
        seconds=f"{settings.statement_timeout.total_seconds():g}",
        message=_message(error),
    )
    return kind(f"{settings.url}: {doing} failed ({number}): {said}")


def _judge(error: Exception, number: int) -> tuple[type[SourceError], str]:
    """The class of the error, and what to do about it."""
    text = _message(error).lower()
    is_login = number in _LOGIN and "could not connect" not in text
    judged = (
        (number in _NOT_THERE, _NOT_READABLE),
        (number in _NO_WAREHOUSE, _WITHOUT_WAREHOUSE),
        (number in _TOO_LONG, _STOPPED),
        (number in _EXPIRED or (is_login and "expired" in text), _HAS_EXPIRED),
        (is_login, _NOT_ACCEPTED),
        (number in _HTTP or type(error).__name__ in _BROKEN_LINE, _DOES_NOT_ANSWER),
    )
    return next((said for is_so, said in judged if is_so), (SourceError, "{message}"))


def _message(error: Exception) -> str:
    """Snowflake's own words; of a refused login they are looked at, but not passed on."""
    return " ".join(str(getattr(error, "raw_msg", None) or error).split())[:_MAX_MESSAGE]
