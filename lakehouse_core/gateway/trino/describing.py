"""The columns of a statement before it is executed: DESCRIBE OUTPUT, which JDBC's clients ask for.

Which engine will run it is decided when it is executed. Here the router decides as if its
parameters were NULL, and the engine is stopped as soon as it has told its columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from lakehouse_core.domain.errors import QueryFailedError
from lakehouse_core.gateway.trino.types import type_of

if TYPE_CHECKING:
    from lakehouse_core.gateway.service import QueryService
    from lakehouse_core.routing.request import Request

SECONDS = 25.0  # clients give up on an answer after half a minute
WRITTEN = pa.schema([("rows", pa.int64())])  # what Trino says of a statement that writes
_OUTPUT = pa.schema(
    [
        ("Column Name", pa.string()),
        ("Catalog", pa.string()),
        ("Schema", pa.string()),
        ("Table", pa.string()),
        ("Type", pa.string()),
        ("Type Size", pa.int64()),
        ("Aliased", pa.bool_()),
    ]
)
# Bytes of a value; the others have no fixed size.
_SIZES = {"boolean": 1, "tinyint": 1, "smallint": 2, "integer": 4, "bigint": 8, "real": 4,
          "double": 8, "date": 4}  # fmt: skip


async def columns_of_statement(service: QueryService, request: Request) -> pa.Schema:
    """The columns that a statement would give; one that writes is not run.

    Raises:
        RoutingError: it may not run.
        EngineError: the engine failed it, or does not tell in time.
    """
    flight = service.decide(request)
    if flight.decision is None or not flight.decision.facts.is_read_only:
        return WRITTEN
    query = service.run(flight)
    try:
        return await query.schema(SECONDS)
    except TimeoutError:
        raise QueryFailedError(
            f"The engine has not told the columns within {SECONDS:g} s: execute the statement",
            code="EXCEEDED_TIME_LIMIT",
        ) from None
    finally:
        await query.cancel("Only its columns were asked for")


def described(columns: pa.Schema) -> pa.Table:
    """Columns as DESCRIBE OUTPUT tells them; where each comes from is not known."""
    types = [type_of(field.type).text for field in columns]
    count = len(types)
    return pa.table(
        {
            "Column Name": columns.names,
            "Catalog": [""] * count,
            "Schema": [""] * count,
            "Table": [""] * count,
            "Type": types,
            "Type Size": [_SIZES.get(kind, 0) for kind in types],
            "Aliased": [False] * count,
        },
        schema=_OUTPUT,
    )
