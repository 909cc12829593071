"""The statements behind the cost views; see `costs`, which puts them together."""

from __future__ import annotations

# The charges of the window, per currency: what the rows must add up to, and how sure it is.
METERED_SQL = """
SELECT currency, sum(cost) AS cost, count(DISTINCT hour_at) AS hours,
  count(*) FILTER (basis = 'unpriced' AND method <> 'none') AS unpriced,
  count(*) FILTER (basis = 'pending' AND method <> 'none') AS pending,
  list(DISTINCT basis ORDER BY basis) FILTER (basis NOT IN ('unpriced', 'pending')
    AND (method <> 'none' OR cost <> 0)) AS bases,
  list(DISTINCT engine_id ORDER BY engine_id) FILTER (basis = 'unpriced' AND method <> 'none')
    AS unpriced_engines,
  min(hour_at) FILTER (is_provisional) AS provisional_from, max(computed_at) AS computed_at
FROM charge
WHERE hour_at >= $start::TIMESTAMPTZ AND hour_at < $end::TIMESTAMPTZ
  AND ($engine::VARCHAR IS NULL OR engine_id = $engine::VARCHAR)
GROUP BY currency ORDER BY abs(sum(cost)) DESC, currency
"""

KINDS_SQL = """
SELECT kind, sum(cost) AS cost FROM spend
WHERE spent_at >= $split::TIMESTAMPTZ AND currency = $currency::VARCHAR
  AND ($engine::VARCHAR IS NULL OR engine_id = $engine::VARCHAR)
GROUP BY ALL
"""

# Pieces are added up in steps, each over fewer rows: by label, by the names that are asked for, and
# only then divided over tables.
_COSTS = ("cost", "failed_cost", "list_cost")
_ADDED = ", ".join(f"sum({name}) AS {name}" for name in (*_COSTS, "queries", "execution_us"))
# What a sum rests on, as bits: a list of names for every row would be most of the work.
BASES = ("billed", "list", "modelled", "unpriced", "pending")
_BITS = " ".join(f"WHEN '{name}' THEN {1 << bit}" for bit, name in enumerate(BASES))
_PIECES = f"""
, pieces AS (
  SELECT label_id, engine_id, kind, meter, resource, coalesce(is_provisional, false)
      AS is_provisional, basis, {{bucket}}, {_ADDED}
  FROM spend WHERE currency = $currency::VARCHAR {{of_engine}} GROUP BY ALL
), named AS (
  SELECT {{first}} AS first, {{second}} AS second, {{kept}} is_provisional,
    CASE basis {_BITS} ELSE 0 END AS bases, {{by}}, {_ADDED}
  FROM pieces LEFT JOIN placed USING (label_id) WHERE true {{where}} GROUP BY ALL
){{divided}}"""  # noqa: S608 constants of this module

# A template that touches several tables: each gets a part of its cost, to the last digit together.
_PART = (
    "(((({cost} * 1000000000)::HUGEINT * nth) // n - (({cost} * 1000000000)::HUGEINT * (nth - 1))"
    " // n)::DECIMAL(38,0) * 0.000000001::DECIMAL(10,9))"
)
_DIVIDED = f"""
, touched AS (
  SELECT template_id, table_name, row_number() OVER (PARTITION BY template_id ORDER BY table_name)
    AS nth, count(*) OVER (PARTITION BY template_id) AS n
  FROM (SELECT template_id, table_name FROM template_table
    UNION SELECT template_id, table_name FROM column_usage WHERE table_name <> '')
), divided AS (
  SELECT named.* EXCLUDE (first, second, cost, failed_cost, list_cost), {{first}} AS first,
    {{second}} AS second, {
    ", ".join(
        f"CASE WHEN n IS NULL THEN {name} ELSE {_PART.replace('{cost}', name)} END AS {name}"
        for name in _COSTS
    )
}
  FROM named LEFT JOIN touched USING (template_id) WHERE true {{where}}
)"""  # noqa: S608 constants of this module
_TABLE = "CASE WHEN kind = 'resource' THEN meter WHEN kind <> 'query' THEN kind "
_TABLE += "ELSE coalesce(table_name, 'no table') END"

_SUMS = """
  coalesce(sum(cost) FILTER (NOT is_before), 0) AS cost,
  coalesce(sum(cost) FILTER (is_before), 0) AS before,
  coalesce(sum(queries) FILTER (NOT is_before), 0)::BIGINT AS queries,
  coalesce(sum(queries) FILTER (is_before), 0)::BIGINT AS queries_before,
  coalesce(sum(failed_cost) FILTER (NOT is_before), 0) AS failed_cost,
  coalesce(sum(list_cost) FILTER (NOT is_before), 0) AS list_cost,
  coalesce(sum(cost) FILTER (is_provisional AND NOT is_before), 0) AS provisional_cost,
  coalesce(sum(execution_us) FILTER (NOT is_before), 0)::BIGINT AS execution_us,
  coalesce(bit_or(bases) FILTER (NOT is_before), 0) AS bases"""

ROWS_SQL = f"""{{pieces}}
SELECT * FROM (
  SELECT first, second, kind, grouping(first) AS over_first, grouping(second) AS over_second,
    grouping(kind) AS over_kind, {_SUMS}
  FROM {{source}} GROUP BY GROUPING SETS ((first, second), (first), (kind), ())
)
QUALIFY over_second = 1 OR row_number() OVER (
  PARTITION BY over_second ORDER BY greatest(cost, before) DESC, first, second
) <= $limit::BIGINT
ORDER BY over_first DESC, over_second DESC, greatest(cost, before) DESC, first, second
"""  # noqa: S608 constants of this module
ROWS_BUCKET = ("spent_at < $split::TIMESTAMPTZ AS is_before", "is_before")

SERIES_SQL = """{pieces}
SELECT bucket_at, CASE WHEN list_contains($shown::VARCHAR[], first) THEN first
    ELSE $rest::VARCHAR END AS name, sum(cost) AS cost
FROM {source} GROUP BY ALL HAVING sum(cost) <> 0 ORDER BY bucket_at, name
"""
SERIES_BUCKET = (
    "make_timestamptz(epoch_us(spent_at) // $step_us::BIGINT * $step_us::BIGINT) AS bucket_at",
    "bucket_at",
)


def pieces(
    names: tuple[str, str], filters: dict[str, str], bucket: tuple[str, str], *, of_engine: bool
) -> dict[str, str]:
    """What stands for `{pieces}` and `{source}` in the statements above.

    Args:
        names: expressions of the two names; `TABLE` for tables.
        filters: parameter → the expression that must equal it.
        bucket: how time is cut, and what that is called.
        of_engine: only the engine that is asked for.
    """
    has_tables = TABLE in (*names, *filters.values())
    tests = {name: f" AND {one} = ${name}::VARCHAR" for name, one in filters.items()}
    early = "".join(test for name, test in tests.items() if filters[name] != TABLE)
    late = "".join(test for name, test in tests.items() if filters[name] == TABLE)
    plain = ["NULL::VARCHAR" if one == TABLE else one for one in names]
    divided = ""
    if has_tables:
        first, second = ("first" if names[0] != TABLE else TABLE), names[1]
        second = TABLE if second == TABLE else "second"
        divided = _DIVIDED.format(first=first, second=second, where=late)
    text = _PIECES.format(
        bucket=bucket[0],
        by=bucket[1],
        of_engine="AND engine_id = $engine::VARCHAR" if of_engine else "",
        first=plain[0],
        second=plain[1],
        kept="template_id, kind, meter," if has_tables else "kind,",
        where=early,
        divided=divided,
    )
    return {"pieces": text, "source": "divided" if has_tables else "named"}


TABLE = _TABLE
