"""Importing bills: CSV or Parquet, FOCUS or plain. What cannot be known is told, never guessed.

A line without amount, currency or period is refused. A line that is negative, overlaps another,
names nobody we know, has another currency or an hour that comes twice is kept: its amount is
part of what was charged, and unallocated with the reason. A bill may be imported twice.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import duckdb
import pyarrow as pa

from lakehouse_core import duck
from lakehouse_core.domain.attribution import HOUR_US
from lakehouse_core.domain.cost import STORAGE, BillImport
from lakehouse_core.domain.errors import LakehouseError, Terminal
from lakehouse_core.finops import bills_sql as sql
from lakehouse_core.store.literals import identifier
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.store.schema import schema_of

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.config.models import Config
    from lakehouse_core.store.port import TelemetryStore

MOST_TOLD = 50

_STORED_SQL = "SELECT * FROM bill_line WHERE superseded_by IS NULL"
_RESOURCES_SQL = """
SELECT DISTINCT engine_id, resource FROM (
  SELECT engine_id, resource FROM metering
  UNION ALL SELECT engine_id, resource FROM charge
    WHERE method IN ('seconds', 'credits', 'cpu', 'bytes')
) WHERE resource <> ''
"""
_METERED_SQL = f"""
SELECT engine_id, resource, meter, epoch_us(hour_at) // {HOUR_US} AS hour_no,
  sum(quantity * 1000000000::DECIMAL(10, 0))::BIGINT AS quantity_parts,
  max(capacity) AS capacity
FROM charge WHERE source IN ('engine', 'measured') AND quantity > 0
  AND hour_at >= $since::TIMESTAMPTZ AND hour_at < $until::TIMESTAMPTZ
GROUP BY ALL
"""  # noqa: S608 constants of ours
_REPLACED_SQL = """
SELECT charge.* REPLACE (0 AS quantity, NULL AS attributed, NULL AS capacity, 'none' AS method,
  0 AS list_cost, 0 AS contracted_cost, 0 AS cost, NULL AS billed_cost, $reason AS reason,
  $now::TIMESTAMPTZ AS computed_at)
FROM charge WHERE price_id IN (SELECT 'bill:' || unnest($lines::VARCHAR[]))
"""


class BillError(Terminal, LakehouseError):
    """Raised when a file is not a bill at all; says what is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BillOptions:
    """How a file is to be read.

    Attributes:
        zone: of times that have none, e.g. Europe/Berlin.
        engine: the engine all lines are about, when the file does not say.
        is_correction: lines imported before for the same engines and periods do not count any more.
    """

    zone: str | None = None
    engine: str | None = None
    is_correction: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BillReport:
    """What an import did.

    Attributes:
        lines: in the file.
        new: lines that were not known before.
        amounts: currency → sum of the lines that were taken.
        unallocated: reason → sum of the lines that are kept but not split.
        refused: lines that were not taken, with the reason; the first of them.
        refused_lines: how many.
        superseded: lines of earlier imports that do not count any more.
        hours: hours whose charges changed.
    """

    import_id: str
    file_name: str
    lines: int
    new: int
    amounts: dict[str, Decimal]
    unallocated: dict[str, Decimal]
    refused: tuple[str, ...]
    refused_lines: int
    superseded: int
    hours: tuple[int, ...]


def import_bill(
    store: TelemetryStore, config: Config, path: Path, options: BillOptions, now: datetime
) -> BillReport:
    """Read a bill and write its lines and the charges they make.

    Raises:
        BillError: the file cannot be read, or has no column for amount, currency or period.
        StoreError: the store cannot be read or written.
    """
    _check(config, options)
    import_id = f"{now:%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"
    stored = store.read(_STORED_SQL)
    with duck.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        _read(connection, path, options)
        connection.register("names", _names(config))
        connection.register("resources", store.read(_RESOURCES_SQL))
        connection.execute(f"CREATE TEMP TABLE lines AS {sql.LINES_SQL}", {"zone": options.zone})
        superseded = _superseded(connection, stored, options)
        connection.register("stored", _without(stored, superseded))
        connection.execute(
            f"CREATE TEMP TABLE reasoned AS {sql.REASONED_SQL}",
            {"currency": config.prices.currency, "oldest": now - config.store.retention},
        )
        fresh = _fresh(connection, import_id, path.name, now)
        charges = _charges(connection, store, fresh, now)
        report = _report(connection, import_id, path.name, fresh, len(superseded), charges)
    # What goes is written before what comes: of a line that stays, the last word counts.
    hours = set(report.hours) | _replace(store, stored, superseded, import_id, now)
    if fresh.num_rows:
        store.upsert("bill_line", fresh)
        store.upsert("charge", charges)
    store.upsert("bill_import", to_arrow("bill_import", [_noted(report, now)]))
    return replace(report, hours=tuple(sorted(hours)))


def _noted(report: BillReport, now: datetime) -> BillImport:
    return BillImport(
        import_id=report.import_id,
        file_name=report.file_name,
        imported_at=now,
        lines=report.lines,
        new_lines=report.new,
        superseded=report.superseded,
        refused_lines=report.refused_lines,
        refused=report.refused,
    )


def _check(config: Config, options: BillOptions) -> None:
    known = (*config.engines, *(f"{STORAGE}{name}" for name in config.catalogs))
    if options.engine is not None and options.engine not in known:
        raise BillError(
            f"Engine {options.engine!r} is not configured; there are {', '.join(known)}"
        )
    if options.zone is not None:
        try:
            ZoneInfo(options.zone)
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise BillError(f"{options.zone!r} is no time zone, e.g. Europe/Berlin") from error


def _read(connection: Any, path: Path, options: BillOptions) -> None:
    """Make `raw`: the columns we know by our own names, as texts, and the number of the line."""
    if not path.is_file():
        raise BillError(f"There is no file {path}")
    is_parquet = path.suffix.lower() in (".parquet", ".pq")
    reader = "read_parquet($path)" if is_parquet else "read_csv($path, all_varchar = true)"
    try:
        connection.execute(
            f"CREATE TEMP TABLE file AS SELECT * FROM {reader}",  # noqa: S608 one of two
            {"path": str(path)},
        )
    except duckdb.Error as error:
        first = str(error).splitlines()[0]
        raise BillError(f"{path} cannot be read as a bill: {first}") from error
    present = {row[0].lower(): row[0] for row in connection.execute("DESCRIBE file").fetchall()}
    found = {
        field: next((present[name] for name in names if name in present), None)
        for field, names in sql.COLUMNS.items()
    }
    missing = [field for field in sql.NEEDED if found[field] is None]
    if missing:
        wanted = "; ".join(f"{' or '.join(sql.COLUMNS[field])}" for field in missing)
        raise BillError(f"{path} is no bill we know: it has no column {wanted}")
    columns = [
        f"nullif(trim({identifier(name)}::VARCHAR), '') AS {field}"
        if name is not None
        else f"NULL::VARCHAR AS {field}"
        for field, name in found.items()
    ]
    if options.engine is not None:
        columns[list(found).index("said_engine")] = "$engine::VARCHAR AS said_engine"
    connection.execute(
        f"CREATE TEMP TABLE raw AS SELECT row_number() OVER () + $first AS line_no, "  # noqa: S608 quoted names
        f"{', '.join(columns)} FROM file",
        {"first": 0 if is_parquet else 1}
        | ({"engine": options.engine} if options.engine is not None else {}),
    )


def _names(config: Config) -> pa.Table:
    """What bills call our engines and storage: our names first, then the configuration's."""
    ours = (*config.engines, *(f"{STORAGE}{name}" for name in config.catalogs))
    globs = [(name, name) for name in ours] + list(config.prices.bill_names.items())
    return pa.table(
        {
            "pattern": [_regex(glob.lower()) for glob, _ in globs],
            "engine_id": [engine for _, engine in globs],
            "place": list(range(len(globs))),
        },
        schema=pa.schema(
            [("pattern", pa.string()), ("engine_id", pa.string()), ("place", pa.int64())]
        ),
    )


def _regex(glob: str) -> str:
    return "".join({"*": ".*", "?": "."}.get(one) or re.escape(one) for one in glob)


def _superseded(connection: Any, stored: pa.Table, options: BillOptions) -> set[str]:
    """Lines imported before that this bill corrects."""
    if not options.is_correction:
        return set()
    connection.register("known", stored)
    rows = connection.execute(
        """
        SELECT DISTINCT known.line_id FROM known JOIN lines ON known.engine_id = lines.engine_id
          AND known.meter = lines.meter AND known.period_start < lines.period_end
          AND known.period_end > lines.period_start
        WHERE lines.problem IS NULL
        """
    ).fetchall()
    return {row[0] for row in rows}


def _without(stored: pa.Table, lines: set[str]) -> pa.Table:
    wanted = [line not in lines for line in stored.column("line_id").to_pylist()]
    return stored.filter(pa.array(wanted, pa.bool_()))


def _fresh(connection: Any, import_id: str, file_name: str, now: datetime) -> pa.Table:
    """The lines that count for no import yet, as rows of `bill_line`.

    A line that this bill takes out and says again counts again, with the id it had.
    """
    schema = schema_of("bill_line")
    found = connection.execute(
        """
        SELECT *, $import AS import_id, $file AS file_name, NULL::VARCHAR AS superseded_by,
          $now::TIMESTAMPTZ AS imported_at
        FROM reasoned ANTI JOIN stored USING (line_id) ORDER BY line_no
        """,
        {"import": import_id, "file": file_name, "now": now},
    ).to_arrow_table()
    return found.select(schema.names).cast(schema)


def _charges(connection: Any, store: TelemetryStore, fresh: pa.Table, now: datetime) -> pa.Table:
    schema = schema_of("charge")
    if not fresh.num_rows:
        return schema.empty_table()
    since = min(fresh.column("period_start").to_pylist())
    until = max(fresh.column("period_end").to_pylist())
    connection.register("metered", store.read(_METERED_SQL, since=since, until=until))
    connection.register("fresh", fresh)
    found = connection.execute(sql.spread_sql(), {"now": now}).to_arrow_table()
    return found.select(schema.names).cast(schema)


def _replace(
    store: TelemetryStore, stored: pa.Table, lines: set[str], import_id: str, now: datetime
) -> set[int]:
    """Take lines of earlier imports out of what counts; returns the hours they were in."""
    if not lines:
        return set()
    is_gone = [line in lines for line in stored.column("line_id").to_pylist()]
    gone = stored.filter(pa.array(is_gone, pa.bool_()))
    marks = pa.array([import_id] * gone.num_rows, pa.string())
    place = gone.schema.get_field_index("superseded_by")
    store.upsert("bill_line", gone.set_column(place, "superseded_by", marks))
    reason = f"replaced by import {import_id}"
    schema = schema_of("charge")
    emptied = store.read(_REPLACED_SQL, lines=sorted(lines), reason=reason, now=now)
    store.upsert("charge", emptied.select(schema.names).cast(schema))
    return {int(at.timestamp()) // 3600 for at in emptied.column("hour_at").to_pylist()}


def _report(
    connection: Any,
    import_id: str,
    file_name: str,
    fresh: pa.Table,
    superseded: int,
    charges: pa.Table,
) -> BillReport:
    refused = connection.execute(
        "SELECT line_no, problem FROM lines WHERE problem IS NOT NULL ORDER BY line_no"
    ).fetchall()
    amounts = connection.execute(
        "SELECT currency, sum(cost) FROM reasoned GROUP BY currency ORDER BY currency"
    ).fetchall()
    kept = connection.execute(
        "SELECT reason, sum(cost) FROM reasoned WHERE reason IS NOT NULL GROUP BY reason ORDER BY 1"
    ).fetchall()
    ((lines,),) = connection.execute("SELECT count(*) FROM lines").fetchall()
    hours = {
        int(at.astimezone(UTC).timestamp()) // 3600 for at in charges.column("hour_at").to_pylist()
    }
    return BillReport(
        import_id=import_id,
        file_name=file_name,
        lines=int(lines),
        new=fresh.num_rows,
        amounts=_sums(amounts),
        unallocated=_sums(kept),
        refused=tuple(f"line {number}: {why}" for number, why in refused[:MOST_TOLD]),
        refused_lines=len(refused),
        superseded=superseded,
        hours=tuple(sorted(hours)),
    )


def _sums(rows: list[tuple[str, Decimal]]) -> dict[str, Decimal]:
    return {str(name): Decimal(amount) for name, amount in rows}
