"""Statements that need no engine: about the session, about names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from lakehouse_core.domain.errors import LakehouseError, QueryFailedError
from lakehouse_core.gateway.service import new_gateway_id
from lakehouse_core.gateway.trino.describing import described
from lakehouse_core.gateway.trino.errors import of_exception
from lakehouse_core.gateway.trino.pages import Page
from lakehouse_core.gateway.trino.session import header_value
from lakehouse_core.gateway.trino.types import columns_of
from lakehouse_core.gateway.trino.values import encode_rows
from lakehouse_core.sql.session import (
    Deallocate,
    DescribePrepared,
    Prepare,
    SetSession,
    Show,
    Transaction,
    Use,
    bind_parameters,
    parameter_count,
    parse_session,
    text_of_literal,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from lakehouse_core.gateway.trino.metadata import Metadata
    from lakehouse_core.gateway.trino.session import ClientSession
    from lakehouse_core.routing.request import Sight
    from lakehouse_core.sql.session import SessionStatement

_DIALECT = "trino"
_INPUT = pa.schema([("Position", pa.int64()), ("Type", pa.string())])


@dataclass(frozen=True, slots=True)
class KnownNames:
    """The names of the lake, and which of them who asks may know of.

    Attributes:
        columns: asks an engine for the columns of a statement.
    """

    metadata: Metadata
    sight: Sight
    columns: Callable[[str], Awaitable[pa.Schema]]


async def own_answer(
    statement: SessionStatement | None, sql: str, session: ClientSession, names: KnownNames
) -> Page:
    """The page that answers a statement; errors are pages too."""
    page = Page(query_id=new_gateway_id(), base="", state="FINISHED")
    try:
        if statement is None:
            _put(page, await names.metadata.query(sql, session, names.sight))
        elif isinstance(statement, Show):
            _put(page, await names.metadata.show(statement, session, names.sight))
        elif isinstance(statement, DescribePrepared):
            _put(page, await _described(statement, session, names))
        else:
            update_type, page.headers = _session_change(statement, session)
            page.put_done(update_type)
    except LakehouseError as error:
        page.state, page.error = "FAILED", of_exception(error)
    return page


def _session_change(
    statement: SessionStatement, session: ClientSession
) -> tuple[str, list[tuple[str, str]]]:
    """What the client is told to remember."""
    match statement:
        case Prepare(name, sql):
            if not sql.strip():
                raise QueryFailedError("PREPARE wants a statement behind FROM", code="SYNTAX_ERROR")
            return "PREPARE", [
                ("X-Trino-Added-Prepare", f"{header_value(name)}={header_value(sql)}")
            ]
        case Deallocate(name):
            if name not in session.prepared:
                raise QueryFailedError(f"Prepared statement not found: {name}", code="NOT_FOUND")
            return "DEALLOCATE", [("X-Trino-Deallocated-Prepare", header_value(name))]
        case SetSession(name, None):
            return "RESET SESSION", [("X-Trino-Clear-Session", name)]
        case SetSession(name, value):
            text = text_of_literal(value or "", _DIALECT)
            return "SET SESSION", [("X-Trino-Set-Session", f"{name}={header_value(text)}")]
        case Use(catalog, schema):
            chosen = catalog or session.catalog
            if chosen is None:
                raise QueryFailedError(
                    "Catalog must be specified when session catalog is not set",
                    code="SYNTAX_ERROR",
                )
            return "USE", [("X-Trino-Set-Catalog", chosen), ("X-Trino-Set-Schema", schema)]
        case Transaction(verb):
            raise QueryFailedError(
                f"{verb} is not possible here: statements may run on different engines, each is "
                "its own transaction; use autocommit",
                code="NOT_SUPPORTED",
            )
    raise QueryFailedError("This statement is not possible here", code="NOT_SUPPORTED")


async def _described(
    statement: DescribePrepared, session: ClientSession, names: KnownNames
) -> pa.Table:
    kept = session.prepared.get(statement.name)
    if kept is None:
        raise QueryFailedError(f"Prepared statement not found: {statement.name}", code="NOT_FOUND")
    count = parameter_count(kept, _DIALECT)
    if not statement.is_output:
        rows = {"Position": list(range(count)), "Type": ["unknown"] * count}
        return pa.table(rows, schema=_INPUT)
    sql = bind_parameters(kept, ["NULL"] * count, _DIALECT)
    inner = parse_session(sql, _DIALECT)
    if isinstance(inner, Show) and names.metadata.knows(inner, session):
        return described((await names.metadata.show(inner, session, names.sight)).schema)
    if inner is not None and not isinstance(inner, Show):
        return described(pa.schema([]))  # it changes the session, and gives no rows
    if names.metadata.concerns(sql, session):
        return described((await names.metadata.query(sql, session, names.sight)).schema)
    return described(await names.columns(sql))


def _put(page: Page, rows: pa.Table) -> None:
    page.columns = columns_of(rows.schema)
    batches = rows.combine_chunks().to_batches()
    page.data = encode_rows(batches[0]) if batches else None
