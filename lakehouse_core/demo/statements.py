"""What the demo's personas run, in Trino's words; `:names` vary from run to run.

Each template can be said in the dialect of every engine without doubt: decimals are made DOUBLE
where engines would round them differently, and the order is total where a limit cuts.

Each template says what its parameters are drawn from. Mistakes are kept apart: they are sent as
they are, so that the engines' own errors show up in their histories.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random

    from lakehouse_core.sql.retarget import Value

DIALECT = "trino"
COUNTRIES = ("DE", "AT", "BE", "CZ", "DK", "ES", "FI", "FR", "IE", "IT", "NL", "PL", "PT", "SE")
REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")


@dataclass(frozen=True, slots=True)
class Draw:
    """What values are drawn with: a seeded source, and the instant where the events end."""

    random: Random
    anchor: datetime


@dataclass(frozen=True, slots=True)
class Template:
    """A statement and how its parameters are chosen."""

    name: str
    sql: str
    values: Callable[[Draw], Mapping[str, Value]] = lambda _: {}


def _last_days(most: int) -> Callable[[Draw], Mapping[str, Value]]:
    def draw(given: Draw) -> Mapping[str, Value]:
        end = given.anchor - timedelta(days=given.random.randrange(14 - most))
        start = end - timedelta(days=given.random.randint(1, most))
        country = given.random.choice(COUNTRIES)
        return {"start": naive(start), "end": naive(end), "country": country}

    return draw


def naive(instant: datetime) -> datetime:
    """An instant without its zone: engines take it in the session's, which is UTC everywhere."""
    return instant.replace(tzinfo=None)


def _tpch(given: Draw) -> Mapping[str, Value]:
    start = date(given.random.randint(1993, 1997), given.random.randint(1, 12), 1)
    discount = given.random.randint(2, 9)
    return {
        "start": start,
        "end": date(start.year + 1, start.month, 1),
        "month_end": (start + timedelta(days=32)).replace(day=1),
        "low": (discount - 1) / 100,
        "high": (discount + 1) / 100,
        "quantity": given.random.choice((24, 25)),
        "region": given.random.choice(REGIONS),
        "segment": given.random.choice(SEGMENTS),
        "size": given.random.randint(1, 50),
        "most": given.random.choice((250, 275, 300)),
    }


def _returns(given: Draw) -> Mapping[str, Value]:
    # In TPC-H nothing that was received after June 1995 has been returned yet.
    start = date(given.random.randint(1993, 1994), given.random.randint(1, 12), 1)
    return {"start": start, "month_end": (start + timedelta(days=32)).replace(day=1)}


def _three_countries(given: Draw) -> Mapping[str, Value]:
    return dict(zip("abc", given.random.sample(COUNTRIES, 3), strict=True))


def _customers(given: Draw) -> Mapping[str, Value]:
    low = given.random.randrange(2_500)
    return {"low": low, "high": low + given.random.choice((50, 100, 500))}


def _opened(given: Draw) -> Mapping[str, Value]:
    return {"day": date(given.random.randint(2018, 2025), given.random.randint(1, 12), 1)}


DASHBOARDS: tuple[Template, ...] = (
    Template(
        "revenue",
        "SELECT CAST(event_at AS DATE) AS day, count(*) AS purchases, sum(revenue) AS revenue "
        "FROM lake.demo.events WHERE kind = 'purchase' AND event_at >= :start AND event_at < :end "
        "GROUP BY 1 ORDER BY 1",
        _last_days(7),
    ),
    Template(
        "pages",
        "SELECT page, count(*) AS views, avg(CAST(duration_ms AS DOUBLE)) AS mean_ms "
        "FROM lake.demo.events "
        "WHERE country = :country AND event_at >= :start AND event_at < :end "
        "GROUP BY page ORDER BY views DESC, page LIMIT 10",
        _last_days(3),
    ),
    Template(
        "funnel",
        "SELECT kind, count(DISTINCT user_id) AS users FROM lake.demo.events "
        "WHERE event_at >= :start AND event_at < :end GROUP BY kind ORDER BY kind",
        _last_days(1),
    ),
    Template(
        "orders",
        "SELECT status, count(*) AS orders, sum(total) AS total FROM lake.demo.orders_cdc "
        "WHERE customer_id BETWEEN :low AND :high GROUP BY status ORDER BY status",
        _customers,
    ),
    Template(
        "sales",
        "SELECT country, count(*) AS sales, sum(amount) AS amount FROM lake.demo.skewed "
        "WHERE country IN (:a, :b, :c) GROUP BY country ORDER BY amount DESC",
        _three_countries,
    ),
    Template(
        "sensors",
        "SELECT status, count(*) AS readings, max(updated_at) AS latest FROM lake.demo.churn "
        "GROUP BY status ORDER BY status",
    ),
    Template(
        "accounts",
        "SELECT country, count(*) AS accounts, sum(balance) AS balance FROM lake.demo.healthy "
        "WHERE is_active AND opened_on >= :day GROUP BY country "
        "ORDER BY balance DESC, country LIMIT 5",
        _opened,
    ),
    Template(
        "regions",
        "SELECT n.n_name, sum(l.l_extendedprice * (1 - l.l_discount)) AS revenue "
        "FROM lake.demo.customer c JOIN lake.demo.orders o ON c.c_custkey = o.o_custkey "
        "JOIN lake.demo.lineitem l ON l.l_orderkey = o.o_orderkey "
        "JOIN lake.demo.supplier s ON l.l_suppkey = s.s_suppkey AND c.c_nationkey = s.s_nationkey "
        "JOIN lake.demo.nation n ON s.s_nationkey = n.n_nationkey "
        "JOIN lake.demo.region r ON n.n_regionkey = r.r_regionkey "
        "WHERE r.r_name = :region AND o.o_orderdate >= :start AND o.o_orderdate < :end "
        "GROUP BY n.n_name ORDER BY revenue DESC",
        _tpch,
    ),
    Template(
        "discounts",
        "SELECT sum(l_extendedprice * l_discount) AS revenue FROM lake.demo.lineitem "
        "WHERE l_shipdate >= :start AND l_shipdate < :end AND l_discount BETWEEN :low AND :high "
        "AND l_quantity < :quantity",
        _tpch,
    ),
)

QUESTIONS: tuple[Template, ...] = (
    Template(
        "pricing-summary",
        "SELECT l_returnflag, l_linestatus, sum(l_quantity) AS quantity, "
        "sum(l_extendedprice * (1 - l_discount)) AS price, avg(CAST(l_discount AS DOUBLE)) "
        "AS discount, count(*) AS items FROM lake.demo.lineitem WHERE l_shipdate <= :end "
        "GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus",
        _tpch,
    ),
    Template(
        "shipping-priority",
        "SELECT l.l_orderkey, sum(l.l_extendedprice * (1 - l.l_discount)) AS revenue, "
        "o.o_orderdate FROM lake.demo.customer c "
        "JOIN lake.demo.orders o ON c.c_custkey = o.o_custkey "
        "JOIN lake.demo.lineitem l ON l.l_orderkey = o.o_orderkey "
        "WHERE c.c_mktsegment = :segment AND o.o_orderdate < :start AND l.l_shipdate > :start "
        "GROUP BY l.l_orderkey, o.o_orderdate "
        "ORDER BY revenue DESC, o.o_orderdate, l.l_orderkey LIMIT 10",
        _tpch,
    ),
    Template(
        "late-orders",
        "SELECT o_orderpriority, count(*) AS orders FROM lake.demo.orders o "
        "WHERE o_orderdate >= :start AND o_orderdate < :month_end AND EXISTS ("
        "SELECT 1 FROM lake.demo.lineitem l WHERE l.l_orderkey = o.o_orderkey "
        "AND l.l_commitdate < l.l_receiptdate) GROUP BY o_orderpriority ORDER BY o_orderpriority",
        _tpch,
    ),
    Template(
        "returned-items",
        "SELECT c.c_custkey, c.c_name, sum(l.l_extendedprice * (1 - l.l_discount)) AS lost "
        "FROM lake.demo.customer c JOIN lake.demo.orders o ON c.c_custkey = o.o_custkey "
        "JOIN lake.demo.lineitem l ON l.l_orderkey = o.o_orderkey "
        "WHERE o.o_orderdate >= :start AND o.o_orderdate < :month_end AND l.l_returnflag = 'R' "
        "GROUP BY c.c_custkey, c.c_name ORDER BY lost DESC, c.c_custkey LIMIT 20",
        _returns,
    ),
    Template(
        "order-counts",
        "WITH counts AS (SELECT c.c_custkey, count(o.o_orderkey) AS orders "
        "FROM lake.demo.customer c LEFT JOIN lake.demo.orders o ON c.c_custkey = o.o_custkey "
        "AND o.o_orderdate < :end GROUP BY c.c_custkey) "
        "SELECT orders, count(*) AS customers FROM counts GROUP BY orders "
        "ORDER BY customers DESC, orders DESC",
        _tpch,
    ),
    Template(
        "promotion-share",
        "SELECT 100.00 * CAST(sum(CASE WHEN p.p_type LIKE 'PROMO%' "
        "THEN l.l_extendedprice * (1 - l.l_discount) ELSE 0 END) AS DOUBLE) "
        "/ sum(l.l_extendedprice * (1 - l.l_discount)) AS share "
        "FROM lake.demo.lineitem l JOIN lake.demo.part p ON l.l_partkey = p.p_partkey "
        "WHERE l.l_shipdate >= :start AND l.l_shipdate < :month_end",
        _tpch,
    ),
    Template(
        "large-orders",
        "SELECT o.o_orderkey, o.o_totalprice, sum(l.l_quantity) AS quantity "
        "FROM lake.demo.orders o JOIN lake.demo.lineitem l ON o.o_orderkey = l.l_orderkey "
        "WHERE o.o_orderkey IN (SELECT l_orderkey FROM lake.demo.lineitem "
        "GROUP BY l_orderkey HAVING sum(l_quantity) > :most) "
        "GROUP BY o.o_orderkey, o.o_totalprice "
        "ORDER BY o.o_totalprice DESC, o.o_orderkey LIMIT 10",
        _tpch,
    ),
    Template(
        "suppliers-per-part",
        "SELECT p.p_brand, p.p_size, count(DISTINCT ps.ps_suppkey) AS suppliers "
        "FROM lake.demo.partsupp ps JOIN lake.demo.part p ON p.p_partkey = ps.ps_partkey "
        "WHERE p.p_size >= :size AND p.p_brand <> 'Brand#45' "
        "GROUP BY p.p_brand, p.p_size ORDER BY suppliers DESC, p.p_brand, p.p_size LIMIT 20",
        _tpch,
    ),
    Template(
        "sessions-of-buyers",
        "SELECT e.country, count(DISTINCT e.user_id) AS buyers, sum(e.revenue) AS revenue "
        "FROM lake.demo.events e JOIN lake.demo.healthy a ON a.account_id = e.user_id "
        "WHERE e.kind = 'purchase' AND a.is_active AND e.event_at >= :start "
        "GROUP BY e.country ORDER BY revenue DESC",
        _last_days(10),
    ),
)

MISTAKES: tuple[str, ...] = (
    "SELECT l_shipdat, count(*) FROM lake.demo.lineitem GROUP BY 1",  # no such column
    "SELECT * FROM lake.demo.order LIMIT 10",  # no such table
    "SELECT country count(*) FROM lake.demo.events GROUP country",  # no statement at all
    "SELECT country, page, count(*) FROM lake.demo.events GROUP BY country",  # page not grouped
    "SELECT CAST(kind AS INTEGER) FROM lake.demo.events LIMIT 5",  # text is no number
)
