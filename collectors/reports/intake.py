"""Reports that Iceberg clients POST, one per request, to rows; see `Intake`.

A client knows a table by the catalog name of its own configuration. Ours is taken when the first
part of the reported name is a catalog of ours, else when the path or the only catalog tells.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from collectors.base import BadRowError
from collectors.letters import dead_letter
from collectors.reports.mapping import Report, to_row
from collectors.torn import decoded, mended
from lakehouse_core.domain.clock import Clock, utc_now
from lakehouse_core.gateway.intake import Delivery, Mapped, Verdict
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.store.schema import schema_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakehouse_core.domain.agent import DeadLetter

SOURCE = "iceberg-reports"
_LEVELS = "\x1f"  # between the levels of a namespace in a path of the REST specification
_REPORT = msgspec.json.Decoder(Report)
_BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class ReportIntake:
    """Understands scan and commit reports; `catalogs` are the names of ours."""

    def __init__(self, catalogs: Sequence[str], clock: Clock = utc_now) -> None:
        self._catalogs = tuple(catalogs)
        self._clock = clock

    def map(self, deliveries: Sequence[Delivery]) -> Mapped:
        """See `Intake.map`."""
        verdicts: list[Verdict] = []
        rows: dict[str, list[Mapping[str, Any]]] = {}
        letters: list[DeadLetter] = []
        for delivery in deliveries:
            try:
                report = decoded(_REPORT, delivery.body)
                table_id = self._table_id(report.table_name, delivery.path)
                digest = hashlib.sha256(table_id.encode() + b"\0" + delivery.body).hexdigest()[:32]
                row = to_row(report, digest, table_id, self._clock())
            except (*_BROKEN, BadRowError) as error:
                broken = _not_json(delivery.body)
                verdicts.append(Verdict(refusal=broken) if broken else Verdict(dead_letters=1))
                if not broken:
                    text = delivery.body.decode("utf-8", "replace")
                    letters.append(dead_letter(SOURCE, text, str(error), self._clock()))
            else:
                verdicts.append(Verdict(accepted=1))
                rows.setdefault(row.table, []).append(row.values)
        tables = {name: _table(name, values) for name, values in rows.items()}
        if letters:
            tables["dead_letter"] = to_arrow("dead_letter", letters)
        return Mapped(tuple(verdicts), tables)

    def _table_id(self, reported: str, path: Mapping[str, str]) -> str:
        catalog, _, rest = reported.partition(".")
        if catalog in self._catalogs and rest:
            return reported
        named = reported
        if "table" in path and "namespace" in path:
            levels = path["namespace"].split(_LEVELS)
            catalog, named = path.get("prefix", ""), ".".join((*levels, path["table"]))
            if catalog in self._catalogs:
                return f"{catalog}.{named}"
        if not named:
            raise BadRowError("table-name is empty")
        return f"{self._catalogs[0]}.{named}" if len(self._catalogs) == 1 else reported


def _not_json(body: bytes) -> str | None:
    try:
        msgspec.json.decode(mended(body) or body)
    except _BROKEN as error:
        return f"the body is not JSON: {error}"
    return None


def _table(name: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    schema = schema_of(name)
    return pa.Table.from_pylist([dict(row) for row in rows], schema=schema)
