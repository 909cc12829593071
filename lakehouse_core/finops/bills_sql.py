"""Bills in SQL: from columns as a file has them to lines, and from lines to charges of hours."""

from __future__ import annotations

from string import Template

from lakehouse_core.domain.attribution import HOUR_US
from lakehouse_core.domain.cost import UNKNOWN_ENGINE

# What a line is made of → the columns that may hold it, lower case, the best first. FOCUS 1.0 to
# 1.4, and a plain file: engine, start, end, cost, currency and what else it likes.
COLUMNS: dict[str, tuple[str, ...]] = {
    "said_engine": ("engine", "x_engine"),
    "said_resource": ("resource", "resourcename", "resourceid"),
    "service": ("servicename", "service"),
    "account": ("subaccountname", "subaccountid"),
    "said_meter": ("meter", "x_meter"),
    "service_category": ("servicecategory",),
    "category": ("chargecategory", "category"),
    "sku": ("skupriceid", "skuid", "sku"),
    "detail": ("chargedescription", "description"),
    "said_start": ("chargeperiodstart", "start", "period_start"),
    "said_end": ("chargeperiodend", "end", "period_end"),
    "said_quantity": ("consumedquantity", "pricingquantity", "quantity"),
    "unit": ("consumedunit", "pricingunit", "unit"),
    "said_cost": ("effectivecost", "cost", "billedcost"),
    "said_list": ("listcost", "list_cost"),
    "said_contracted": ("contractedcost", "contracted_cost"),
    "said_billed": ("billedcost", "billed_cost"),
    "currency": ("billingcurrency", "currency"),
}
# What a charge may be (FOCUS); a plain file may say anything else, which is then no category.
CATEGORIES = ("Usage", "Purchase", "Tax", "Credit", "Adjustment")
NEEDED = ("said_start", "said_end", "said_cost", "currency")

# Times with a zone are what they are; others are local ones of $zone, where an hour may come twice
# or never.
_ZONED = "( ?(Z|UTC)|:[0-9.]+ ?[+-][0-9]{2}(:?[0-9]{2})?)$"
_TIME = Template("""CASE
    WHEN regexp_matches($text, '$zoned') THEN try_cast($text AS TIMESTAMPTZ)
    WHEN $$zone::VARCHAR IS NOT NULL
      THEN timezone($$zone::VARCHAR, try_cast($text AS TIMESTAMP)) END""")
_IS_LOCAL = Template("NOT regexp_matches($text, '$zoned')")


def _doubt(text: str, moment: str) -> str:
    """SQL of what is wrong with a local time; NULL when nothing is."""
    local = _IS_LOCAL.substitute(text=text, zoned=_ZONED)
    written = f"try_cast({text} AS TIMESTAMP)"
    zone = "$zone::VARCHAR"
    return f"""CASE WHEN {local} AND {moment} IS NOT NULL THEN CASE
      WHEN timezone({zone}, {moment}) <> {written} THEN {text} || ' does not exist in ' || {zone}
        || ': the clock was put forward'
      WHEN timezone({zone}, {moment} + INTERVAL 1 HOUR) = {written}
        OR timezone({zone}, {moment} - INTERVAL 1 HOUR) = {written}
        THEN {text} || ' comes twice in ' || {zone} || ': the clock was put back' END END"""


# `raw` has the columns named above; `names` has pattern, engine_id and place; `resources` has the
# resources that queries name, by engine.
LINES_SQL = f"""
WITH timed AS (
  SELECT *, {_TIME.substitute(text="said_start", zoned=_ZONED)} AS period_start,
    {_TIME.substitute(text="said_end", zoned=_ZONED)} AS period_end,
    try_cast(said_cost AS DECIMAL(27, 9)) AS cost,
    try_cast(said_list AS DECIMAL(27, 9)) AS list_cost,
    try_cast(said_contracted AS DECIMAL(27, 9)) AS contracted_cost,
    try_cast(said_billed AS DECIMAL(27, 9)) AS billed_cost,
    try_cast(said_quantity AS DECIMAL(27, 9)) AS quantity
  FROM raw
), unsure AS (
  SELECT *, coalesce({_doubt("said_start", "period_start")}, {_doubt("said_end", "period_end")})
    ::VARCHAR AS doubt
  FROM timed
), doubted AS (  -- an hour that was never there may leave nothing of a period
  SELECT * REPLACE (CASE WHEN doubt IS NOT NULL AND period_end <= period_start
      THEN period_start + INTERVAL 1 HOUR ELSE period_end END AS period_end),
    CASE
      WHEN said_cost IS NULL THEN 'has no amount'
      WHEN cost IS NULL THEN 'amount ' || said_cost || ' is no number'
      WHEN currency IS NULL OR NOT regexp_full_match(currency, '[A-Z]{{3}}')
        THEN 'has no ISO 4217 currency'
      WHEN said_start IS NULL OR said_end IS NULL THEN 'has no period'
      WHEN ({_IS_LOCAL.substitute(text="said_start", zoned=_ZONED)}
        OR {_IS_LOCAL.substitute(text="said_end", zoned=_ZONED)}) AND $zone::VARCHAR IS NULL
        THEN 'times have no zone: give --timezone, or write them in UTC'
      WHEN period_start IS NULL OR period_end IS NULL THEN 'period is no time'
      WHEN period_end <= period_start AND doubt IS NULL THEN 'period ends before it starts'
      WHEN period_end > period_start + INTERVAL 400 DAY THEN 'period is longer than a year'
    END AS problem
  FROM unsure
), named AS (
  SELECT doubted.*, (
    SELECT first(names.engine_id ORDER BY place) FROM names
    WHERE regexp_full_match(lower(coalesce(said_engine, '')), pattern)
      OR (said_engine IS NULL AND (regexp_full_match(lower(coalesce(said_resource, '')), pattern)
        OR regexp_full_match(lower(coalesce(service, '')), pattern)
        OR regexp_full_match(lower(coalesce(account, '')), pattern)))
    ) AS known_engine,
    coalesce(lower(said_meter), CASE
      WHEN category IS NOT NULL AND lower(category) <> 'usage' THEN lower(category)
      WHEN lower(service_category) = 'storage' THEN 'storage'
      WHEN regexp_matches(lower(coalesce(unit, '')), 'tera|\\btb\\b|tib') THEN 'scan'
      ELSE 'compute' END) AS meter
  FROM doubted
)
SELECT line_no, problem, coalesce(known_engine, '{UNKNOWN_ENGINE}') AS engine_id,
  coalesce(said_engine, service, said_resource) AS said_engine,
  CASE WHEN (coalesce(known_engine, ''), coalesce(said_resource, '')) IN (
    SELECT (engine_id, resource) FROM resources) THEN said_resource ELSE '' END AS resource,
  meter, period_start, period_end, unit, quantity, list_cost, contracted_cost, cost, billed_cost,
  currency, category AS charge_category, doubt,
  md5(concat_ws(chr(31), coalesce(known_engine, ''), coalesce(said_engine, ''),
    coalesce(said_resource, ''), coalesce(service, ''), coalesce(account, ''), meter,
    coalesce(sku, ''), coalesce(detail, ''), coalesce(unit, ''), coalesce(currency, '')))
    AS subject
FROM named
"""  # noqa: S608 constants of ours

# Why a line's amount is kept, but not split: it says two things at once, or what we cannot know.
REASONED_SQL = f"""
WITH numbered AS (
  SELECT *, md5(concat_ws(chr(31), subject, period_start::VARCHAR, period_end::VARCHAR,
      cost::VARCHAR, coalesce(quantity::VARCHAR, ''), row_number() OVER (
        PARTITION BY subject, period_start, period_end, cost, quantity ORDER BY line_no)))
      AS line_id
  FROM lines WHERE problem IS NULL
), seen AS (
  SELECT *, max(period_end) OVER earlier AS reached,
    arg_max(line_no, period_end) OVER earlier AS reached_by
  FROM numbered
  WINDOW earlier AS (PARTITION BY subject ORDER BY period_start, period_end, line_no
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
)
SELECT seen.*, CASE
    WHEN engine_id = '{UNKNOWN_ENGINE}' THEN 'the bill names ' || coalesce(said_engine, 'nothing')
      || ', which is no engine of ours: map it under prices.bill_names'
    WHEN currency <> $currency::VARCHAR THEN 'billed in ' || currency || ', the price book is in '
      || $currency::VARCHAR || ': no rate is assumed'
    WHEN cost < 0 OR list_cost < 0 OR contracted_cost < 0
      THEN 'negative amount: a credit or refund is nobody''s use'
    WHEN charge_category IS NOT NULL AND lower(charge_category) <> 'usage'
      THEN charge_category || ' is not use'
    WHEN doubt IS NOT NULL THEN doubt
    WHEN period_start < $oldest::TIMESTAMPTZ THEN 'begins before ' || strftime(
      $oldest::TIMESTAMPTZ, '%Y-%m-%d') || ', where the history of queries ended when it came'
    WHEN reached > period_start THEN 'overlaps line ' || reached_by || ' of the same subject'
    WHEN other.line_id IS NOT NULL THEN 'overlaps a line of ' || other.file_name
      || ', imported before: use --replace when this bill corrects it'
  END AS reason
FROM seen LEFT JOIN (
  SELECT new.line_id AS new_id, min(old.line_id) AS line_id, min(old.file_name) AS file_name
  FROM numbered AS new JOIN stored AS old ON old.engine_id = new.engine_id
    AND old.resource = new.resource AND old.meter = new.meter AND old.line_id <> new.line_id
    AND old.period_start < new.period_end AND old.period_end > new.period_start
  GROUP BY new.line_id
) AS other ON other.new_id = seen.line_id
ORDER BY line_no
"""  # noqa: S608 constants of ours

# A line over its hours: by what was metered there before the bill came, else by time. Every running
# total is rounded down, so the hours add up to the line. Weights are made coarser where an amount
# times their sum would not fit into 38 digits.
SPREAD_SQL = f"""
WITH used AS (
  SELECT engine_id, resource, meter, hour_no, sum(quantity_parts) AS quantity_parts,
    max(capacity) AS capacity
  FROM (FROM metered WHERE resource <> '' UNION ALL SELECT * REPLACE ('' AS resource) FROM metered)
  GROUP BY ALL
), cut AS (
  SELECT *, unnest(generate_series(epoch_us(period_start) // {HOUR_US},
    (epoch_us(period_end) - 1) // {HOUR_US})) AS hour_no
  FROM fresh
), timed AS (
  SELECT cut.*, least(epoch_us(period_end), (hour_no + 1) * {HOUR_US})
      - greatest(epoch_us(period_start), hour_no * {HOUR_US}) AS time_us,
    used.quantity_parts, used.capacity
  FROM cut LEFT JOIN used USING (engine_id, resource, meter, hour_no)
), weighed AS (
  SELECT *, CASE WHEN reason IS NULL AND sum(coalesce(quantity_parts, 0)) OVER line > 0
    THEN coalesce(quantity_parts, 0)::HUGEINT * time_us ELSE time_us::HUGEINT END AS weight
  FROM timed WINDOW line AS (PARTITION BY line_id)
), summed AS (
  SELECT *, sum(weight) OVER (PARTITION BY line_id ORDER BY hour_no) AS reached,
    sum(weight) OVER (PARTITION BY line_id) AS whole
  FROM weighed
), scaled AS (
  SELECT *, whole // (10000000000000000000::HUGEINT * 1000000000000000000 // {{largest}}) + 1
    AS coarse
  FROM summed
), placed AS (
  SELECT *, reached // coarse AS after, (reached - weight) // coarse AS before,
    whole // coarse AS total
  FROM scaled
)
SELECT make_timestamptz(hour_no * {HOUR_US}) AS hour_at, engine_id, resource, meter,
  'bill:' || line_id AS price_id, coalesce(unit, 'bill') AS unit,
  {{quantity}} AS quantity, NULL::DECIMAL(38, 9) AS attributed,
  CASE WHEN meter = 'compute' THEN capacity END AS capacity,
  CASE WHEN reason IS NOT NULL THEN 'none' WHEN meter = 'compute' THEN 'seconds'
    WHEN meter = 'scan' THEN 'bytes' ELSE 'resource' END AS method,
  {{list_cost}} AS list_cost, {{contracted_cost}} AS contracted_cost, {{cost}} AS cost,
  currency, 'billed' AS basis, 'imported' AS source, 0::BIGINT AS minimum_bytes,
  FALSE AS failed_is_free, FALSE AS is_provisional, reason,
  $now::TIMESTAMPTZ AS computed_at,
  CASE WHEN billed_cost IS NOT NULL THEN {{billed_cost}} END AS billed_cost,
  list_extract({list(CATEGORIES)}, list_position({[one.lower() for one in CATEGORIES]},
    lower(charge_category))) AS charge_category
FROM placed ORDER BY ALL
"""  # noqa: S608 constants of ours
_PARTS = Template("(CAST($amount AS DECIMAL(27, 9)) * 1000000000::DECIMAL(10, 0))::HUGEINT")
_PART = Template("""(($parts * after // total - $parts * before // total)
    ::DECIMAL(28, 0) * 0.000000001)::DECIMAL(38, 9)""")


def spread_sql() -> str:
    """The statement that makes charges of bill lines."""
    amounts = {
        "quantity": "coalesce(quantity, 0)",
        "list_cost": "coalesce(list_cost, cost)",
        "contracted_cost": "coalesce(contracted_cost, cost)",
        "cost": "cost",
        "billed_cost": "coalesce(billed_cost, 0)",
    }
    parts = {name: _PARTS.substitute(amount=text) for name, text in amounts.items()}
    return SPREAD_SQL.format(
        largest=f"greatest(1, {', '.join(f'abs({one})' for one in parts.values())})",
        **{name: _PART.substitute(parts=text) for name, text in parts.items()},
    )
