"""What AWS and its library raise → errors of ours that say what to do.

Of a refused signature or token only the code is told: what AWS writes beside it may quote the
request, and with it a session token.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lakehouse_core.domain.errors import SourceError, SourceUnavailableError, Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collectors.athena.config import AthenaSettings

_BUSY = frozenset(
    {
        "ThrottlingException",
        "Throttling",
        "ThrottledException",
        "TooManyRequestsException",
        "RequestLimitExceeded",
        "SlowDown",
    }
)
_EXPIRED = frozenset({"ExpiredTokenException", "ExpiredToken", "RequestExpired"})
_NOT_ACCEPTED = frozenset(
    {
        "UnrecognizedClientException",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "SignatureDoesNotMatch",
        "IncompleteSignature",
        "MissingAuthenticationToken",
        "MissingAuthenticationTokenException",
    }
)
_DENIED = frozenset({"AccessDeniedException", "AccessDenied", "UnauthorizedOperation"})
_RENEW = (
    "renew them: `aws sso login` for a profile, a new session_token where keys are configured, "
    "or the role of this machine"
)


class RefusedRequestError(Terminal, SourceError):
    """Raised when Athena finds a request itself wrong: no such workgroup, a stale page token."""


class ForbiddenError(Terminal, SourceError):
    """Raised when these credentials may not read this workgroup."""


class MalformedAnswerError(SourceError):
    """Raised when an answer is not what Athena's interface promises."""


@contextmanager
def translated(settings: AthenaSettings, doing: str) -> Iterator[None]:
    """Let nothing but errors of ours out.

    Args:
        settings: where was asked, how often.
        doing: the call and its object, e.g. "ListQueryExecutions of workgroup primary".
    """
    from botocore import exceptions as boto  # noqa: PLC0415 the driver stays in its adapter

    place = settings.place
    try:
        yield
    except boto.ClientError as error:
        raise _refused(error, settings, doing) from error
    except (boto.ReadTimeoutError, boto.ConnectTimeoutError) as error:
        raise SourceUnavailableError(
            f"{place} does not answer {doing} within "
            f"{settings.call_timeout.total_seconds():g} s; check the network, tried again later"
        ) from error
    except (boto.HTTPClientError, boto.ConnectionError) as error:
        raise SourceUnavailableError(
            f"{place} does not answer ({type(error).__name__}); check region, endpoint and the "
            "network of this machine"
        ) from error
    except (
        boto.NoCredentialsError,
        boto.PartialCredentialsError,
        boto.CredentialRetrievalError,
        boto.TokenRetrievalError,
        boto.SSOError,
        boto.ProfileNotFound,
        boto.ConfigParseError,
    ) as error:
        raise SourceError(
            f"there are no AWS credentials to ask {place} with ({type(error).__name__}); set "
            "profile, or access_key_id and secret_access_key, of the engine, and if they were "
            f"there before, {_RENEW}"
        ) from error
    except (boto.BotoCoreError, ValueError) as error:
        # The parser of answers raises ValueError itself: bytes that are no UTF-8, times that are
        # none.
        raise MalformedAnswerError(
            f"{place} answered {doing} with something that is not Athena's "
            f"({type(error).__name__}); is the endpoint right?"
        ) from error


def _refused(error: Any, settings: AthenaSettings, doing: str) -> SourceError:
    details = error.response.get("Error", {})
    code = str(details.get("Code", "unknown"))
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    where = f"{settings.place} answered {doing} with {code}"
    if code in _BUSY or status == 429:
        return SourceUnavailableError(
            f"{where}: too many requests, after {settings.attempts} attempts; tried again later. "
            "Collect less often, or ask AWS for a higher quota"
        )
    if code in _EXPIRED:
        return SourceError(f"{where}: the AWS credentials have expired; {_RENEW}")
    if code in _NOT_ACCEPTED:
        return SourceError(
            f"{where}: AWS does not accept the credentials; check the keys of the engine and the "
            "clock of this machine"
        )
    if code in _DENIED:
        return ForbiddenError(
            f"{where}: these credentials may not; allow them athena:ListQueryExecutions, "
            "athena:BatchGetQueryExecution and athena:GetQueryExecution on the workgroup"
        )
    if status >= 500 or code == "InternalServerException":
        return SourceUnavailableError(f"{where}; Athena is in trouble, tried again later")
    message = str(details.get("Message", ""))[:200]
    return RefusedRequestError(f"{where}: {message}; check region and workgroups of the engine")
