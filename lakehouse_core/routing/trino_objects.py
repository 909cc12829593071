"""The objects trino-gateway's rules ask about a request, made from ours."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from lakehouse_core.domain.query import StatementKind
from lakehouse_core.routing.mvel_values import Host, Optional
from lakehouse_core.routing.names import name_parts

if TYPE_CHECKING:
    from lakehouse_core.routing.request import Request, StatementFacts

_TYPES = {
    StatementKind.SELECT: "Query",
    StatementKind.INSERT: "Insert",
    StatementKind.UPDATE: "Update",
    StatementKind.DELETE: "Delete",
    StatementKind.MERGE: "Merge",
    StatementKind.EXPLAIN: "Explain",
    StatementKind.CALL: "Call",
}
_RESOURCE_TYPES = {
    kind: kind.value.upper()
    for kind in (
        *(StatementKind.SELECT, StatementKind.INSERT, StatementKind.UPDATE, StatementKind.DELETE),
        *(StatementKind.MERGE, StatementKind.EXPLAIN, StatementKind.DESCRIBE),
    )
}
_SKIPPED = frozenset({"OR", "REPLACE", "MATERIALIZED"})


def request_object(request: Request) -> Host:
    """`request`: what came over HTTP; other protocols have the headers they would have sent."""
    spoken = {
        "x-trino-user": request.user,
        "x-trino-source": request.source,
        "x-trino-client-tags": ",".join(request.tags) or None,
        "x-trino-catalog": request.catalog,
        "x-trino-schema": request.schema,
    }

    def header(name: str) -> str | None:
        key = name.lower()
        return request.headers.get(key, spoken.get(key))

    return Host(
        {
            "getHeader": header,
            "getMethod": lambda: "POST",
            "getRequestURI": lambda: "/v1/statement",
            "getQueryString": lambda: None,
            "getRemoteUser": lambda: request.user,
            "getRemoteAddr": lambda: request.headers.get("x-forwarded-for"),
            "getRemoteHost": lambda: request.headers.get("x-forwarded-for"),
        }
    )


def user_object(request: Request) -> Host:
    """`trinoRequestUser`."""
    return Host(
        {
            "getUser": lambda: Optional(request.user),
            "getUserInfo": Optional,
            "userExistsAndEquals": lambda name: request.user is not None and request.user == name,
        }
    )


def query_object(request: Request, facts: StatementFacts) -> Host:
    """`trinoQueryProperties`: from the text alone; views are not looked into."""

    def tables() -> set[tuple[str, ...]]:
        return {name_parts(table) for table in facts.tables}

    def part(number: int) -> set[str]:
        return {parts[number] for parts in tables() if len(parts) == 3}

    return Host(
        {
            "getQueryType": lambda: _query_type(facts),
            "getResourceGroupQueryType": lambda: _resource_type(facts),
            "getDefaultCatalog": lambda: Optional(request.catalog),
            "getDefaultSchema": lambda: Optional(request.schema),
            "getCatalogs": lambda: part(0),
            "getSchemas": lambda: part(1),
            "getCatalogSchemas": lambda: {
                f"{parts[0]}.{parts[1]}" for parts in tables() if len(parts) == 3
            },
            "getTables": lambda: {".".join(parts) for parts in tables()},
            "tablesContains": lambda name: name_parts(name) in tables(),
            "getBody": lambda: request.sql,
            "isNewQuerySubmission": lambda: True,
            "isQueryParsingSuccessful": lambda: facts.error is None,
            "getErrorMessage": lambda: Optional(facts.error),
            "errorMessage": lambda: facts.error,
        }
    )


def _query_type(facts: StatementFacts) -> str:
    """The name Trino's parser has for the statement, as far as we can tell."""
    if _is_ctas(facts):
        return "CreateTableAsSelect"
    known = _TYPES.get(facts.kind)
    if known is not None:
        return known
    words = [word for word in facts.template.upper().split()[:4] if word not in _SKIPPED]
    return "".join(word.capitalize() for word in words[:2])


def _resource_type(facts: StatementFacts) -> str:
    if facts.error is not None:
        return "UNKNOWN"
    if _is_ctas(facts):
        return "INSERT"
    if facts.template.upper().startswith("ANALYZE"):
        return "ANALYZE"
    return _RESOURCE_TYPES.get(facts.kind, "DATA_DEFINITION")


def _is_ctas(facts: StatementFacts) -> bool:
    if facts.kind is not StatementKind.CREATE:
        return False
    words = facts.template.upper().replace("(", " ").split()
    is_query = any(a == "AS" and b in ("SELECT", "WITH") for a, b in pairwise(words))
    return "TABLE" in words[:4] and is_query
