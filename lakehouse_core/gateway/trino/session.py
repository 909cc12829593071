"""What a Trino client says about itself in headers, and what it is told to remember.

The session lives in the client: it sends catalog, schema, properties and prepared statements along
with every statement, and keeps what the answer's headers tell it to set or forget.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote_plus

from lakehouse_core.domain.errors import QueryFailedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakehouse_core.gateway.auth import Identity

_PREFIX = "x-trino-"
_PARAMETRIC = "PARAMETRIC_DATETIME"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSession:
    """The facts of one statement's session."""

    user: str
    groups: tuple[str, ...]
    role: str | None
    proven_role: str | None
    source: str | None
    catalog: str | None
    schema: str | None
    tags: tuple[str, ...]
    properties: Mapping[str, str]
    prepared: Mapping[str, str]
    is_parametric: bool


def read_session(headers: Mapping[str, str], identity: Identity) -> ClientSession:
    """The session that a request's headers describe.

    Args:
        headers: names in lower case.
        identity: who the client proved to be; beats what it says it is.

    Raises:
        QueryFailedError: a header cannot be read; names it.
    """
    get = headers.get
    return ClientSession(
        user=identity.user,
        groups=identity.groups,
        role=identity.role or _role(get(f"{_PREFIX}role", "")),
        proven_role=identity.role,
        source=get(f"{_PREFIX}source") or None,
        catalog=get(f"{_PREFIX}catalog") or None,
        schema=get(f"{_PREFIX}schema") or None,
        tags=tuple(
            tag.strip() for tag in get(f"{_PREFIX}client-tags", "").split(",") if tag.strip()
        ),
        properties=_pairs(headers, f"{_PREFIX}session"),
        prepared=_pairs(headers, f"{_PREFIX}prepared-statement"),
        is_parametric=_PARAMETRIC in get(f"{_PREFIX}client-capabilities", "").upper(),
    )


def header_value(text: str) -> str:
    """A text as a header of the protocol carries it."""
    return quote(text, safe="")


def _pairs(headers: Mapping[str, str], name: str) -> dict[str, str]:
    raw = headers.get(name, "")
    if not raw:
        return {}
    found = {}
    for part in raw.split(","):
        if not part.strip():
            continue
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise QueryFailedError(
                f"Header {name} wants name=value pairs separated by commas", code="SYNTAX_ERROR"
            )
        found[unquote_plus(key.strip())] = unquote_plus(value.strip())
    return found


def _role(raw: str) -> str | None:
    """The role of `system=ROLE{name}`, of whichever catalog comes first."""
    for part in raw.split(","):
        _, _, value = unquote_plus(part).partition("=")
        if value.startswith("ROLE{") and value.endswith("}"):
            return value[5:-1]
    return None
