"""The FOCUS export: charges split over what caused them, one file, checked as it was written.

One row per hour, charge and cause (template and user, idle, unallocated). The rows of a charge name
it (`x_OriginChargeId`) and add up to it (`x_OriginCost`). An engine without an invoice has a
BilledCost of 0; its EffectiveCost is modelled, and `x_CostBasis` says so. What a bill says of a
charge (category, billed beside effective cost) goes out as it came in; taxes, credits and refunds
have no unit price. What has no price is not written as 0: it is left out and counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from lakehouse_core import duck
from lakehouse_core.finops.focus_check import Verdict, check_file
from lakehouse_core.finops.spend import DAY, whole_hour

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from lakehouse_core.config.finops import FocusSettings
    from lakehouse_core.finops.focus_columns import Version
    from lakehouse_core.finops.groups import GroupRules
    from lakehouse_core.store.port import TelemetryStore

# What engines are to FOCUS, by type: category, subcategory, service, provider (None: your own).
_SERVICES: dict[str, tuple[str, str, str, str | None]] = {
    "athena": ("Analytics", "Data Processing", "Amazon Athena", "Amazon Web Services"),
    "duckdb": ("Analytics", "Data Processing", "DuckDB", None),
    "flink": ("Analytics", "Streaming Analytics", "Apache Flink", None),
    "snowflake": ("Databases", "Data Warehouses", "Snowflake", "Snowflake"),
    "spark": ("Analytics", "Data Processing", "Apache Spark", None),
    "storage": ("Storage", "Object Storage", "Object storage", None),
    "trino": ("Analytics", "Data Processing", "Trino", None),
}
_OTHER = ("Analytics", "Analytics Platforms", "Other engine", None)
_PRICED_IN = {
    "cluster_hour": "Hours",
    "node_hour": "Hours",
    "core_hour": "Core-Hours",
    "tb_scanned": "TB",
    "credit": "Credits",
    "slot_hour": "Slot-Hours",
    "gb_month": "GB-Months",
    "thousand_requests": "1000 Requests",
}
_CONSUMED_IN = {
    "hour": "Hours",
    "core_second": "Core-Seconds",
    "byte": "Bytes",
    "credit": "Credits",
    "slot_hour": "Slot-Hours",
    "dpu_hour": "DPU-Hours",
    "request": "Requests",
}

TOTAL_SQL = """
SELECT currency, coalesce(sum(cost) FILTER (basis NOT IN ('unpriced', 'pending')), 0) AS cost,
  count(*) FILTER (basis IN ('unpriced', 'pending') AND method <> 'none') AS unpriced
FROM charge WHERE hour_at >= $start::TIMESTAMPTZ AND hour_at < $end::TIMESTAMPTZ
GROUP BY currency ORDER BY currency
"""

DAYS_SQL = """
SELECT DISTINCT make_timestamptz(epoch_us(hour_at) // 86400000000 * 86400000000) AS day_at
FROM charge WHERE hour_at >= $start::TIMESTAMPTZ AND hour_at < $end::TIMESTAMPTZ ORDER BY day_at
"""

# Quantities are what the cost is of the unit price, so that their product is the cost.
ROWS_SQL = """
WITH service AS (
  SELECT unnest($types::VARCHAR[]) AS engine_type, unnest($categories::VARCHAR[]) AS category,
    unnest($subcategories::VARCHAR[]) AS subcategory, unnest($services::VARCHAR[]) AS service,
    unnest($providers::VARCHAR[]) AS provider
), priced AS (
  SELECT unnest($price_units::VARCHAR[]) AS price_unit, unnest($priced_in::VARCHAR[]) AS priced_in
), consumed AS (
  SELECT unnest($units::VARCHAR[]) AS unit, unnest($consumed_in::VARCHAR[]) AS consumed_in
), placed AS MATERIALIZED (
  SELECT label_id, template_id, user_name, source, statement_kind, {number} AS number
  FROM cost_label
), spent AS (
  SELECT * FROM cost_hour
  WHERE hour_at >= $start::TIMESTAMPTZ AND hour_at < $end::TIMESTAMPTZ AND runs > 0
), pieces AS (
  SELECT hour_at, engine_id, resource, meter, price_id, currency, origin.basis,
    coalesce(piece.is_provisional, origin.is_provisional) AS is_provisional,
    coalesce(kind, 'unallocated') AS kind, coalesce(label_id, '') AS label_id,
    coalesce(piece.reason, origin.reason) AS reason, coalesce(queries, 0) AS queries,
    coalesce(failed, 0) AS failed, coalesce(piece.cost, 0) AS cost,
    coalesce(piece.list_cost, 0) AS list_cost,
    coalesce(piece.contracted_cost, 0) AS contracted_cost, origin.unit, origin.method,
    origin.cost AS origin_cost, origin.list_cost AS origin_list,
    origin.contracted_cost AS origin_contracted, origin.quantity,
    CASE WHEN origin.basis = 'billed' THEN coalesce(origin.billed_cost, origin.cost) ELSE 0 END
      AS origin_billed,
    coalesce(charge_category, CASE WHEN origin.cost < 0 THEN 'Adjustment' ELSE 'Usage' END)
      AS charge_category,
    least(origin.cost, origin.list_cost, origin.contracted_cost, origin.billed_cost) < 0
      AS is_negative,
    price.name AS price_name, price.unit AS price_unit,
    coalesce(nullif(price.list_rate, 0)::DOUBLE, origin.list_cost / nullif(origin.quantity, 0),
      origin.list_cost::DOUBLE) AS list_rate,
    coalesce(nullif(price.contracted_rate, 0)::DOUBLE,
      origin.contracted_cost / nullif(origin.quantity, 0), origin.contracted_cost::DOUBLE)
      AS contracted_rate,
    md5(concat_ws('|', epoch_us(hour_at), engine_id, resource, meter, price_id)) AS origin_id
  FROM charge AS origin LEFT JOIN spent AS piece
    USING (hour_at, engine_id, resource, meter, price_id, currency)
  LEFT JOIN price USING (price_id)
  WHERE hour_at >= $start::TIMESTAMPTZ AND hour_at < $end::TIMESTAMPTZ
    AND origin.basis NOT IN ('unpriced', 'pending')
    AND (piece.kind IS NOT NULL OR origin.billed_cost <> 0)
), reached AS (
  SELECT *, (sum(cost) OVER here * 1000000000)::HUGEINT AS after,
    ((sum(cost) OVER here - cost) * 1000000000)::HUGEINT AS before,
    row_number() OVER here AS place,
    charge_category IN ('Usage', 'Purchase') AND is_negative AS is_correction,
    charge_category IN ('Usage', 'Purchase') AND NOT is_negative AS is_priced
  FROM pieces
  WINDOW here AS (PARTITION BY origin_id ORDER BY kind, label_id, reason
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
), named AS (
  SELECT *, {workload} AS workload, {team} AS team, {cost_center} AS cost_center,
    CASE kind WHEN 'query' THEN coalesce(nullif(template_id, ''), 'unknown') ELSE kind END AS cause
  FROM reached LEFT JOIN placed USING (label_id)
  LEFT JOIN (SELECT engine_id, engine_type AS known_type FROM engine) USING (engine_id)
  JOIN service ON engine_type = CASE WHEN starts_with(engine_id, 'storage:') THEN 'storage'
    WHEN list_contains($types::VARCHAR[], known_type) THEN known_type ELSE 'other' END
  LEFT JOIN priced USING (price_unit) LEFT JOIN consumed USING (unit)
)
SELECT
  CASE WHEN origin_billed = origin_cost THEN cost
    WHEN origin_cost = 0 THEN CASE WHEN place = 1 THEN origin_billed ELSE 0 END
    ELSE (((origin_billed * 1000000000)::HUGEINT * after // (origin_cost * 1000000000)::HUGEINT
      - (origin_billed * 1000000000)::HUGEINT * before // (origin_cost * 1000000000)::HUGEINT)
      ::DECIMAL(28, 0) * 0.000000001) END::DECIMAL(38,9) AS "BilledCost",
  $account::VARCHAR AS "BillingAccountId", $account_name::VARCHAR AS "BillingAccountName",
  currency AS "BillingCurrency", date_trunc('month', hour_at) AS "BillingPeriodStart",
  date_trunc('month', hour_at) + INTERVAL 1 MONTH AS "BillingPeriodEnd",
  charge_category AS "ChargeCategory",
  CASE WHEN is_correction THEN 'Correction' END AS "ChargeClass",
  concat_ws(' ', engine_id, meter, 'for', cause) AS "ChargeDescription",
  hour_at AS "ChargePeriodStart", hour_at + INTERVAL 1 HOUR AS "ChargePeriodEnd",
  contracted_cost AS "ContractedCost", cost AS "EffectiveCost",
  NULL::VARCHAR AS "HostProviderName",
  coalesce(provider, $issuer::VARCHAR) AS "InvoiceIssuerName",
  list_cost AS "ListCost",
  CASE WHEN is_priced THEN coalesce(list_cost / nullif(list_rate, 0),
    contracted_cost / nullif(contracted_rate, 0), 0)::DECIMAL(38,15) END AS "PricingQuantity",
  CASE WHEN is_priced THEN coalesce(priced_in, consumed_in, 'Units') END AS "PricingUnit",
  category AS "ServiceCategory", service AS "ServiceName",
  coalesce(provider, $issuer::VARCHAR) AS "ServiceProviderName",
  CASE WHEN kind <> 'resource' THEN 'query-' || method || '-v1' END AS "AllocatedMethodId",
  CASE WHEN kind <> 'resource' THEN cause END AS "AllocatedResourceId",
  CASE WHEN kind = 'query' THEN to_json({{'workload': workload, 'team': team,
    'cost_center': cost_center, 'user': nullif(user_name, ''), 'source': nullif(source, '')}})
    ::VARCHAR END AS "AllocatedTags",
  CASE charge_category WHEN 'Usage' THEN 'Usage-Based' ELSE 'One-Time' END AS "ChargeFrequency",
  CASE WHEN is_priced THEN coalesce(
    quantity::DOUBLE * list_cost::DOUBLE / nullif(origin_list::DOUBLE, 0),
    quantity::DOUBLE * contracted_cost::DOUBLE / nullif(origin_contracted::DOUBLE, 0), 0)
    ::DECIMAL(38,15) END AS "ConsumedQuantity",
  CASE WHEN is_priced THEN coalesce(consumed_in, 'Units') END AS "ConsumedUnit",
  CASE WHEN is_priced THEN coalesce(contracted_rate, 0)::DECIMAL(38,15) END
    AS "ContractedUnitPrice",
  CASE WHEN is_priced THEN coalesce(list_rate, 0)::DECIMAL(38,15) END AS "ListUnitPrice",
  CASE WHEN is_priced THEN 'Standard' END AS "PricingCategory",
  concat_ws('/', engine_id, nullif(resource, '')) AS "ResourceId",
  coalesce(nullif(resource, ''), engine_id) AS "ResourceName", meter AS "ResourceType",
  subcategory AS "ServiceSubcategory",
  CASE WHEN is_priced THEN coalesce(price_name, 'bill:' || meter) END AS "SkuId",
  CASE WHEN is_priced THEN meter END AS "SkuMeter",
  CASE WHEN is_priced THEN coalesce(nullif(price_id, ''), 'bill:' || meter) END AS "SkuPriceId",
  basis AS "x_CostBasis", kind AS "x_CostKind", engine_id AS "x_Engine",
  failed AS "x_FailedQueries", is_provisional AS "x_IsProvisional", origin_id AS "x_OriginChargeId",
  origin_cost AS "x_OriginCost", queries AS "x_Queries", nullif(template_id, '')
    AS "x_QueryTemplateId", nullif(reason, '') AS "x_Reason", team AS "x_Team",
  nullif(user_name, '') AS "x_User", CASE kind WHEN 'query' THEN workload END AS "x_WorkloadGroup"
FROM named ORDER BY hour_at, engine_id, origin_id, kind, cause, label_id
"""
# How a column is called in 1.2; what it does not know becomes a column of our own.
_IN_1_2 = {
    "ServiceProviderName": "ProviderName",
    "HostProviderName": "PublisherName",
    "AllocatedMethodId": "x_AllocatedMethodId",
    "AllocatedResourceId": "x_AllocatedResourceId",
    "AllocatedTags": "x_AllocatedTags",
}
_READINGS = 5  # of a day that changes while it is read


@dataclass(frozen=True, slots=True, kw_only=True)
class FocusExport:
    """What was written.

    Attributes:
        metered: currency → the charges of the span, as the store has them.
        unpriced: charges that are left out because nobody knows their price yet.
        verdict: the checker's, of the file as it is.
    """

    path: Path
    version: Version
    start: datetime
    end: datetime
    metered: dict[str, Decimal]
    unpriced: int
    verdict: Verdict

    @property
    def differences(self) -> dict[str, Decimal]:
        """Currency → metered less exported; empty when all of it is there."""
        written = {row["BillingCurrency"]: row["EffectiveCost"] for row in self.verdict.totals}
        found = {}
        for currency, cost in self.metered.items():
            off = cost - Decimal(str(written.get(currency) or 0))
            if off:
                found[currency] = off
        return found

    @property
    def is_ok(self) -> bool:
        """Whether the file keeps FOCUS and holds every charge."""
        return self.verdict.is_ok and not self.differences


def export_focus(  # noqa: PLR0913, PLR0917 one parameter per thing that shapes the file
    store: TelemetryStore,
    rules: GroupRules,
    settings: FocusSettings,
    start: datetime,
    end: datetime,
    path: Path,
    version: Version = "1.4",
) -> FocusExport:
    """Write the span to a file (`.parquet`, else CSV), a day at a time, and check it."""
    start = whole_hour(start)
    params = _params(rules, settings)
    sql = ROWS_SQL.format(number=rules.number_sql, **rules.column_sql("number"))
    # The first read has no rows but the columns: a file without charges has its header, too.
    empty = _in_version(store.read(sql, start=start, end=start, **params), version)
    writer = _Writer(path, empty.schema)
    metered: dict[str, Decimal] = {}
    unpriced = 0
    for day in store.read(DAYS_SQL, start=start, end=end).column("day_at").to_pylist():
        span = {"start": max(start, day), "end": min(day + DAY, end)}
        rows, totals = _at_rest(store, sql, span, params)
        writer.write(_in_version(rows, version))
        for one in totals:
            metered[one["currency"]] = metered.get(one["currency"], Decimal(0)) + one["cost"]
            unpriced += one["unpriced"]
    writer.close()
    return FocusExport(
        path=path,
        version=version,
        start=start,
        end=end,
        metered=metered,
        unpriced=unpriced,
        verdict=check_file(path, version),
    )


def _at_rest(
    store: TelemetryStore, sql: str, span: dict[str, datetime], params: dict[str, Any]
) -> tuple[pa.Table, list[dict[str, Any]]]:
    """The rows of a span, and its charges as they were before and after these were read.

    The running hour is charged anew every minute: what comes in between is read again.
    """
    before = store.read(TOTAL_SQL, **span).to_pylist()
    for _ in range(_READINGS):
        rows = store.read(sql, **span, **params)
        after = store.read(TOTAL_SQL, **span).to_pylist()
        if after == before:
            break
        before = after
    return rows, after


def _params(rules: GroupRules, settings: FocusSettings) -> dict[str, Any]:
    known = {**_SERVICES, "other": _OTHER}
    return {
        **rules.params,
        "account": settings.billing_account_id,
        "account_name": settings.billing_account_name,
        "issuer": settings.invoice_issuer,
        "types": list(known),
        "categories": [one[0] for one in known.values()],
        "subcategories": [one[1] for one in known.values()],
        "services": [one[2] for one in known.values()],
        "providers": [one[3] for one in known.values()],
        "price_units": list(_PRICED_IN),
        "priced_in": list(_PRICED_IN.values()),
        "units": list(_CONSUMED_IN),
        "consumed_in": list(_CONSUMED_IN.values()),
    }


def _in_version(table: pa.Table, version: Version) -> pa.Table:
    """The columns as a version calls them, its own first, ours after them, each by name."""
    named = table
    if version == "1.2":
        named = table.rename_columns([_IN_1_2.get(name, name) for name in table.column_names])
        index = named.column_names.index("PublisherName")
        named = named.set_column(index, "PublisherName", named["ProviderName"])
    order = sorted(named.column_names, key=lambda name: (name.startswith("x_"), name))
    return named.select(order)


class _Writer:
    """Tables into one file; texts of a CSV are written as FOCUS wants them."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._is_parquet = path.suffix.lower() == ".parquet"
        self._writer: Any
        if self._is_parquet:
            self._writer = pq.ParquetWriter(path, schema, compression="zstd")
        else:
            texts = pa.schema([(name, pa.string()) for name in schema.names])
            self._writer = pa_csv.CSVWriter(path, texts)

    def write(self, table: pa.Table) -> None:
        self._writer.write_table(table if self._is_parquet else _texts(table))

    def close(self) -> None:
        self._writer.close()


def _texts(table: pa.Table) -> pa.Table:
    """Every value as text: times in UTC with a Z, numbers with plain digits."""
    parts = []
    for column in table.schema:
        quoted = f'"{column.name}"'
        text = f"{quoted}::VARCHAR"
        if pa.types.is_timestamp(column.type):
            text = f"strftime({quoted} AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%SZ')"
        parts.append(f"{text} AS {quoted}")
    with duck.connect() as connection:
        connection.register("charge_rows", table)
        return connection.execute(f"SELECT {', '.join(parts)} FROM charge_rows").to_arrow_table()  # noqa: S608 our columns
