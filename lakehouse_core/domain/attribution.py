"""How charges are split over queries: one statement, for Spark and for DuckDB.

Spark runs it over the history, DuckDB over the hours that Spark has not seen yet, and tests run it
over whatever they invent. It reads four relations:

- `events`: queries, with the columns of the store's `query_event` that are named below;
- `charges`: rows of the store's `charge`;
- `attributions`: `engine_id`, `query_id`, `credits`, what an engine itself charges a query with;
- `hours`: `hour_no`, the hours (since 1970) to be split.

A query executes for its `execution_ms` before its end: what it waited and was planned for is not
execution. It is cut at full hours. Each charge is met by the pieces of its engine, hour and
resource, which weigh what its method says; the charge is divided as `money.divide` does, in the
order in which the pieces began. What is not used is one more piece at the end. So the pieces of a
charge add up to it, to the last digit.

Where the engine says what its queries used of a resource's compute they weigh that, not their time;
those it says nothing of (very short ones, and what it tells hours later) weigh what the others used
in the same time. The charge is called `credits` then (`credited_sql`); what is told alone decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import Template

from lakehouse_core.domain.cost import RESOURCE_TAGS, SPLIT_METHODS

HOUR_US = 3_600_000_000
TOP_QUERIES = 50
# Tags that tell figures or ids, not who: a label with them would be one query's own.
NO_LABEL_TAGS = (
    "^(cloud_services_credits|scanned_from_cache_percent|partitions_scanned|partitions_total"
    "|parameterized_hash|dpu_count|[a-z_]*_(ms|bytes|id|uuid|hash|at))="
    "|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}|=[0-9]{6,}$|=[0-9a-f]{16,}$"
)
NO_QUERY = "up, and no query ran"
BETWEEN_QUERIES = "up between queries"
NOT_USED = "metered, but used by no query that is known"


@dataclass(frozen=True, slots=True)
class Dialect:
    """Where the two engines spell the same thing differently.

    Attributes:
        div: integer division.
        wide: integers of 38 digits.
        micros: a time as microseconds since 1970.
        time: the other way round.
        numbers: rows of the whole numbers from the first to the last.
        joined: a list as one text.
        starts_with: the first of a list that starts with a text, without it.
        label_tags: the tags that may label a query, sorted.
        no_tags: none of them.
    """

    div: str
    wide: str
    micros: str
    time: str
    numbers: str
    joined: str
    starts_with: str
    label_tags: str
    no_tags: str


SPARK = Dialect(
    div="div",
    wide="DECIMAL(19, 0)",
    micros="unix_micros",
    time="timestamp_micros",
    numbers="explode(sequence(first_no, last_no))",
    joined="array_join",
    starts_with="substring(get(filter(tags, tag -> startswith(tag, '{0}=')), 0), "
    "length('{0}=') + 1)",
    label_tags=f"array_sort(filter(tags, tag -> NOT tag RLIKE '{NO_LABEL_TAGS}'))",
    no_tags="CAST(array() AS ARRAY<STRING>)",
)
DUCKDB = Dialect(
    div="//",
    wide="HUGEINT",
    micros="epoch_us",
    time="make_timestamptz",
    numbers="unnest(generate_series(first_no, last_no))",
    joined="array_to_string",
    starts_with="substring(list_filter(tags, lambda tag: starts_with(tag, '{0}='))[1], "
    "length('{0}=') + 1)",
    label_tags="list_sort(list_filter(tags, lambda tag: "
    f"NOT regexp_matches(tag, '{NO_LABEL_TAGS}')))",
    no_tags="[]::VARCHAR[]",
)

_LABEL_ID = Template("""md5(concat_ws(chr(31), engine_id, coalesce(template_id, ''),
      coalesce(user_name, ''), coalesce(source, ''), coalesce(workload_group, ''),
      coalesce(statement_kind, ''), coalesce($joined(label_tags, chr(30)), '')))""")
# Execution as microseconds since 1970. A query without an end is counted until it was last seen.
_SPANS = Template("""
told AS (
  SELECT engine_id, query_id, status, bytes_scanned, cpu_ms, execution_ms, template_id, user_name,
    source, workload_group, statement_kind, $label_tags AS label_tags, $resource AS resource,
    $micros(submitted_at) AS submitted_us,
    $micros(coalesce(ended_at, CASE WHEN status = 'running' THEN collected_at END)) AS told_end_us,
    CASE WHEN started_at IS NULL THEN $micros(submitted_at)
        + CAST(round((coalesce(queued_ms, 0) + coalesce(planning_ms, 0)) * 1000) AS BIGINT)
      ELSE $micros(started_at) END AS told_begin_us,
    CAST(round(execution_ms * 1000) AS BIGINT) AS execution_us
  FROM events
), ended AS (
  SELECT *, greatest(submitted_us, coalesce(told_end_us,
    told_begin_us + CASE WHEN status = 'queued' THEN 0 ELSE coalesce(execution_us, 0) END))
    AS end_us
  FROM told
), begun AS (
  SELECT *, least(end_us, greatest(submitted_us,
    CASE WHEN status = 'queued' THEN end_us
      WHEN status = 'running' OR execution_us IS NULL THEN told_begin_us
      ELSE end_us - greatest(execution_us, 0) END)) AS begin_us
  FROM ended
), spans AS (
  SELECT *, begin_us $div $hour AS first_no,
    greatest(begin_us $div $hour, (end_us - 1) $div $hour) AS last_no,
    greatest(CAST(round(coalesce(cpu_ms * 1000, end_us - begin_us)) AS BIGINT), 0) AS cpu_us,
    $label_id AS label_id
  FROM begun
)""")

_PIECES = Template("""
cut AS (SELECT *, $numbers AS hour_no FROM spans),
timed AS (
  SELECT /*+ BROADCAST(hours) */ cut.*, greatest(begin_us, cut.hour_no * $hour) AS from_us,
    least(end_us, (cut.hour_no + 1) * $hour) AS to_us
  FROM cut JOIN hours ON cut.hour_no = hours.hour_no
), pieces AS (
  SELECT *, to_us - from_us AS piece_us, hour_no = first_no AS is_first,
    CASE WHEN hour_no = last_no AND status NOT IN ('queued', 'running')
      THEN greatest(coalesce(bytes_scanned, 0), 0) ELSE 0 END AS piece_bytes,
    CASE WHEN first_no = last_no THEN cpu_us
      ELSE CAST((CAST(cpu_us AS $wide) * (to_us - begin_us)) $div (end_us - begin_us)
        - (CAST(cpu_us AS $wide) * (from_us - begin_us)) $div (end_us - begin_us) AS BIGINT)
      END AS piece_cpu_us
  FROM timed
)""")

# Billionths of credits, divided over a query's hours by time; what those that are known add up to.
_CREDITED = Template("""
credited AS (
  SELECT pieces.*, CASE WHEN attributions.credits IS NULL THEN NULL
      WHEN first_no = last_no THEN $credit_parts
      ELSE CAST((CAST($credit_parts AS $wide) * (to_us - begin_us)) $div (end_us - begin_us)
        - (CAST($credit_parts AS $wide) * (from_us - begin_us)) $div (end_us - begin_us) AS BIGINT)
      END AS piece_credits
  FROM pieces LEFT JOIN attributions ON pieces.engine_id = attributions.engine_id
    AND pieces.query_id = attributions.query_id
), known AS (
  SELECT engine_id, resource, hour_no, CAST(sum(piece_credits) AS BIGINT) AS known_credits,
    CAST(greatest(sum(piece_us), 1) AS BIGINT) AS known_us
  FROM credited WHERE piece_credits IS NOT NULL AND resource <> ''
  GROUP BY engine_id, resource, hour_no HAVING sum(piece_credits) > 0
)""")
_CREDIT_PARTS = (
    "CAST(CAST(attributions.credits AS DECIMAL(27, 9)) * CAST(1000000000 AS DECIMAL(10, 0))"
    " AS BIGINT)"
)

# Whole billionths; which charge counts the queries; a number that stands for the key.
_LINES = Template("""
wanted AS (
  SELECT *, $micros(hour_at) $div $hour AS hour_no,
    CAST(CAST(cost AS DECIMAL(27, 9)) * CAST(1000000000 AS DECIMAL(10, 0)) AS BIGINT) AS amount,
    CAST(CAST(list_cost AS DECIMAL(27, 9)) * CAST(1000000000 AS DECIMAL(10, 0)) AS BIGINT)
      AS list_amount,
    CAST(CAST(contracted_cost AS DECIMAL(27, 9)) * CAST(1000000000 AS DECIMAL(10, 0)) AS BIGINT)
      AS contracted_amount,
    CASE WHEN attributed IS NOT NULL
      THEN CAST(CAST(quantity AS DECIMAL(27, 9)) * CAST(1000000000 AS DECIMAL(10, 0)) AS BIGINT)
      END AS quantity_parts,
    CAST(CAST(attributed AS DECIMAL(27, 9)) * CAST(1000000000 AS DECIMAL(10, 0)) AS BIGINT)
      AS attributed_parts,
    CASE WHEN method IN ($split_methods) THEN 1 ELSE 0 END AS is_split
  FROM charges
), ranked AS (
  SELECT wanted.*, row_number() OVER (
      ORDER BY hour_at, engine_id, resource, meter, price_id) AS line_no,
    row_number() OVER (PARTITION BY is_split, engine_id, wanted.hour_no, resource
      ORDER BY CASE WHEN meter = 'compute' THEN 0 ELSE 1 END, meter, price_id) AS place,
    min(resource) OVER (PARTITION BY is_split, engine_id, wanted.hour_no) AS least_resource
  FROM wanted JOIN hours ON wanted.hour_no = hours.hour_no
), lines AS (
  SELECT ranked.*, known.known_credits, known.known_us,
    method IN ('seconds', 'credits') AS is_timed,
    is_split = 1 AND place = 1 AND (ranked.resource = '' OR least_resource <> '') AS counts
  FROM ranked LEFT JOIN known ON ranked.meter = 'compute' AND ranked.engine_id = known.engine_id
    AND ranked.hour_no = known.hour_no AND ranked.resource = known.resource
)""")

# Pieces meet charges; a charge's own last piece takes what is left.
_MET = Template("""
met AS (
  SELECT /*+ BROADCAST(lines) */ lines.line_no, lines.hour_no, pieces.from_us, pieces.to_us,
    pieces.query_id,
    pieces.label_id, pieces.template_id, pieces.user_name, pieces.status, pieces.is_first,
    pieces.piece_us,
    CASE WHEN lines.is_timed THEN CASE
        WHEN lines.known_us IS NULL THEN pieces.piece_us
        WHEN pieces.piece_credits IS NOT NULL THEN pieces.piece_credits
        ELSE CAST((CAST(pieces.piece_us AS $wide) * known_credits) $div known_us AS BIGINT) END
      WHEN lines.method = 'cpu' THEN pieces.piece_cpu_us
      WHEN lines.method = 'bytes' THEN CASE
        WHEN pieces.piece_bytes = 0 OR (pieces.status = 'failed' AND lines.failed_is_free) THEN 0
        ELSE greatest(pieces.piece_bytes, lines.minimum_bytes) END
      ELSE 1 END AS weight
  FROM credited AS pieces JOIN lines ON pieces.engine_id = lines.engine_id
    AND pieces.hour_no = lines.hour_no
    AND lines.is_split = 1 AND (lines.resource = ''
      OR lines.resource = CASE WHEN lines.method = 'query' THEN pieces.query_id
        ELSE pieces.resource END)
  UNION ALL
  SELECT line_no, hour_no, (hour_no + 1) * $hour, (hour_no + 1) * $hour, NULL, '', '', '', '',
    FALSE, 0, 0
  FROM lines
)""")

_SHARES = Template("""
reached AS (
  SELECT *, hour_no $div 24 AS day_no, coalesce(sum(weight) OVER here, 0) AS after,
    sum(weight) OVER whole AS total,
    greatest(0, to_us - greatest(from_us, coalesce(max(to_us) OVER before, from_us))) AS busy_us
  FROM met
  WINDOW whole AS (PARTITION BY hour_no $div 24, line_no),
    here AS (PARTITION BY hour_no $div 24, line_no ORDER BY from_us, query_id NULLS LAST
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW),
    before AS (PARTITION BY hour_no $div 24, line_no ORDER BY from_us, query_id NULLS LAST
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
), summed AS (
  SELECT *, sum(busy_us) OVER (PARTITION BY day_no, line_no) AS line_busy_us FROM reached
), judged AS (
  SELECT /*+ BROADCAST(lines) */ summed.*, lines.engine_id, lines.resource, lines.meter,
    lines.price_id, lines.currency,
    lines.basis, lines.is_provisional, lines.method, lines.is_timed, lines.reason AS why,
    lines.counts,
    lines.amount, lines.list_amount, lines.contracted_amount, lines.quantity_parts,
    lines.attributed_parts, lines.capacity,
    CASE WHEN lines.is_timed THEN line_busy_us ELSE total END AS used
  FROM summed JOIN lines ON summed.line_no = lines.line_no
), parted AS (
  SELECT *,
    CASE WHEN total = 0 OR method IN ('resource', 'none') THEN 0
      WHEN attributed_parts IS NOT NULL THEN least(attributed_parts, quantity_parts)
      ELSE used END AS part,
    greatest(1, CASE WHEN attributed_parts IS NOT NULL THEN quantity_parts
      WHEN capacity IS NULL THEN used ELSE greatest(capacity, used) END) AS parts
  FROM judged
), given AS (
  SELECT *, CAST((CAST(amount AS $wide) * part) $div parts AS BIGINT) AS given_amount,
    CASE WHEN list_amount = amount THEN CAST(NULL AS BIGINT)
      ELSE CAST((CAST(list_amount AS $wide) * part) $div parts AS BIGINT) END AS given_list,
    CASE WHEN contracted_amount = amount THEN CAST(NULL AS BIGINT)
      ELSE CAST((CAST(contracted_amount AS $wide) * part) $div parts AS BIGINT)
      END AS given_contracted
  FROM parted
), shared AS (
  SELECT *, $share_amount AS share_amount, $share_list AS share_list,
    $share_contracted AS share_contracted
  FROM given
)""")

_SHARE = Template("""CASE
    WHEN query_id IS NULL THEN $amount - $given
    WHEN total = 0 THEN 0
    ELSE CAST((CAST($given AS $wide) * after) $div total AS BIGINT)
      - CAST((CAST($given AS $wide) * (after - weight)) $div total AS BIGINT)
    END""")

_ALLOCATION = Template("""
SELECT $time(hour_no * $hour) AS hour_at, engine_id, resource, meter, price_id,
  CASE WHEN query_id IS NOT NULL THEN 'query' WHEN method = 'resource' THEN 'resource'
    WHEN is_timed THEN 'idle' ELSE 'unallocated' END AS kind,
  CASE WHEN query_id IS NOT NULL OR method = 'resource' THEN ''
    WHEN method = 'none' THEN coalesce(why, '')
    WHEN is_timed THEN CASE WHEN total = 0 THEN '$no_query' ELSE '$between' END
    ELSE '$not_used' END AS reason,
  query_id, label_id, coalesce(template_id, '') AS template_id,
  coalesce(user_name, '') AS user_name, status, is_first AND counts AS is_counted,
  CASE WHEN counts THEN piece_us ELSE 0 END AS execution_us, currency, basis, is_provisional,
  CAST(CAST(coalesce(share_list, share_amount) AS DECIMAL(20, 0)) * 0.000000001
    AS DECIMAL(38, 9)) AS list_cost,
  CAST(CAST(coalesce(share_contracted, share_amount) AS DECIMAL(20, 0)) * 0.000000001
    AS DECIMAL(38, 9)) AS contracted_cost,
  CAST(CAST(share_amount AS DECIMAL(20, 0)) * 0.000000001 AS DECIMAL(38, 9)) AS cost
FROM shared
WHERE query_id IS NOT NULL OR share_amount <> 0 OR coalesce(share_list, 0) <> 0
  OR coalesce(share_contracted, 0) <> 0""")

COST_HOUR = Template("""
SELECT hour_at, engine_id, resource, meter, price_id, kind, label_id, reason, currency,
  max(basis) AS basis, bool_or(is_provisional) AS is_provisional, count(*) AS runs,
  CAST(count_if(is_counted) AS BIGINT) AS queries,
  CAST(count_if(is_counted AND status IN ('failed', 'cancelled')) AS BIGINT) AS failed,
  CAST(sum(execution_us) AS BIGINT) AS execution_us,
  CAST(sum(list_cost) AS DECIMAL(38, 9)) AS list_cost,
  CAST(sum(contracted_cost) AS DECIMAL(38, 9)) AS contracted_cost,
  CAST(sum(cost) AS DECIMAL(38, 9)) AS cost,
  CAST(sum(CASE WHEN status IN ('failed', 'cancelled') THEN cost ELSE 0 END) AS DECIMAL(38, 9))
    AS failed_cost,
  current_timestamp AS split_at
FROM $allocation
GROUP BY hour_at, engine_id, resource, meter, price_id, kind, label_id, reason, currency""")

COST_QUERY = Template("""
WITH dear AS (
  SELECT hour_at, engine_id, query_id, currency, min(label_id) AS label_id,
    min(status) AS status, max(basis) AS basis, count(*) AS runs,
    CAST(sum(execution_us) AS BIGINT) AS execution_us, CAST(sum(cost) AS DECIMAL(38, 9)) AS cost
  FROM $allocation WHERE kind = 'query' GROUP BY hour_at, engine_id, query_id, currency
), ranked AS (
  SELECT *, row_number() OVER (
    PARTITION BY hour_at, engine_id, currency ORDER BY cost DESC, query_id) AS place
  FROM dear WHERE cost > 0
)
SELECT hour_at, engine_id, query_id, currency, label_id, status, basis, runs, execution_us, cost
FROM ranked WHERE place <= $top""")

_HOURS = Template("SELECT DISTINCT $numbers AS hour_no FROM spans")

# Few rows have labels of their own: they are told apart before anything is computed of them.
_LABELS = Template("""
WITH raw AS (
  SELECT DISTINCT engine_id, template_id, user_name, source, workload_group, statement_kind, tags
  FROM events
), labelled AS (SELECT *, $label_tags AS label_tags FROM raw)
SELECT DISTINCT $label_id AS label_id, engine_id, coalesce(template_id, '') AS template_id,
  coalesce(user_name, '') AS user_name, coalesce(source, '') AS source,
  coalesce(workload_group, '') AS workload_group, coalesce(statement_kind, '') AS statement_kind,
  coalesce(label_tags, $no_tags) AS tags
FROM labelled""")


def allocation_sql(dialect: Dialect) -> str:
    """The statement that splits charges: one row per charge and piece of a query, and the rests."""
    steps = [_SPANS, _PIECES, _CREDITED, _LINES, _MET, _SHARES]
    return f"WITH {_steps(dialect, steps)} {_fill(_ALLOCATION, dialect)}"


def pieces_sql(dialect: Dialect, select: str) -> str:
    """A statement over `pieces`, the queries cut at full hours."""
    return f"WITH {_steps(dialect, [_SPANS, _PIECES])} {select}"


def credited_sql(dialect: Dialect) -> str:
    """The resources and hours of which the engine itself says what queries used."""
    steps = _steps(dialect, [_SPANS, _PIECES, _CREDITED])
    return f"WITH {steps} SELECT engine_id, resource, hour_no FROM known"  # noqa: S608 ours


def hours_sql(dialect: Dialect) -> str:
    """The hours that queries executed in; `hours` is not looked at."""
    return f"WITH {_steps(dialect, [_SPANS])} {_HOURS.substitute(numbers=dialect.numbers)}"


def labels_sql(dialect: Dialect) -> str:
    """The labels of the queries in `events`."""
    return _fill(_LABELS, dialect)


def cost_hour_sql(allocation: str) -> str:
    """Allocated rows, added up by label: rows of `cost_hour`, in both dialects."""
    return COST_HOUR.substitute(allocation=allocation)


def cost_query_sql(allocation: str) -> str:
    """The dearest queries of each engine and hour: rows of `cost_query`, in both."""
    return COST_QUERY.substitute(allocation=allocation, top=TOP_QUERIES)


def _steps(dialect: Dialect, steps: list[Template]) -> str:
    return ", ".join(_fill(step, dialect) for step in steps)


def _fill(step: Template, dialect: Dialect) -> str:
    resources = (dialect.starts_with.format(tag) for tag in RESOURCE_TAGS)
    shares = {
        f"share_{name}": _SHARE.substitute(
            amount=amount, given=given, wide=dialect.wide, div=dialect.div
        )
        for name, amount, given in (
            ("amount", "amount", "given_amount"),
            ("list", "list_amount", "given_list"),
            ("contracted", "contracted_amount", "given_contracted"),
        )
    }
    return step.substitute(
        shares,
        credit_parts=_CREDIT_PARTS,
        split_methods=", ".join(f"'{name}'" for name in SPLIT_METHODS),
        hour=HOUR_US,
        div=dialect.div,
        wide=dialect.wide,
        micros=dialect.micros,
        time=dialect.time,
        numbers=dialect.numbers,
        joined=dialect.joined,
        label_tags=dialect.label_tags,
        label_id=_LABEL_ID.substitute(joined=dialect.joined),
        no_tags=dialect.no_tags,
        resource=f"coalesce({', '.join(resources)}, '')",
        no_query=NO_QUERY,
        between=BETWEEN_QUERIES,
        not_used=NOT_USED,
    )
