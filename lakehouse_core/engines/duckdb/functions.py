"""SHOW FUNCTIONS, of which DuckDB has no statement: the functions it has, in Trino's columns."""

from __future__ import annotations

from lakehouse_core.engines.duckdb.record import DIALECT
from lakehouse_core.sql.scans import Scan, quote_text
from lakehouse_core.sql.session import Show, parse_session

# Operators and what is meant for DuckDB itself have other names than words.
_LISTING = """
SELECT DISTINCT function_name AS "Function", coalesce(return_type, '') AS "Return Type",
  array_to_string(parameter_types, ', ') AS "Argument Types",
  if(function_type = 'macro', 'scalar', function_type) AS "Function Type",
  stability <> 'VOLATILE' AS "Deterministic", coalesce(description, '') AS "Description"
FROM duckdb_functions()
WHERE function_type IN ('scalar', 'aggregate', 'macro')
  AND regexp_full_match(function_name, '[a-z][a-z0-9_]*')
  AND function_name LIKE {like} ESCAPE '\\'
ORDER BY ALL"""


def parse_listing(sql: str) -> Scan | None:
    """What answers SHOW FUNCTIONS; None: the statement is another.

    Raises:
        QueryFailedError: it begins like a SHOW but cannot be read.
    """
    if sql.lstrip()[:4].upper() != "SHOW":
        return None
    show = parse_session(sql, DIALECT)
    if not isinstance(show, Show) or show.what != "functions" or show.names:
        return None
    like = quote_text("%" if show.like is None else show.like, DIALECT)
    return Scan(sql=_LISTING.format(like=like), tables=(), edits=())
