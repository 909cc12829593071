"""Does a file keep FOCUS? Columns, nulls, formats, products, sums; each broken rule with its row.

Works on CSV and Parquet alike: values are compared as the text they are written with. Rules:

- `column.missing`, `column.unknown`, `column.order`: the header.
- `null`, `empty`, `priced`: a value is missing that must be there, or is an empty text.
- `allowed`, `decimal`, `price`, `time`, `currency`, `json`, `unit`: what a value looks like.
- `period`: ends after it starts; the charge lies in its billing period.
- `product.list`, `product.contracted`: quantity times unit price is the cost.
- `subcategory`: belongs to its category.
- `allocation`: an allocated row names its method and its origin's resource.
- `sum.origin`: the rows of one origin charge (`x_OriginChargeId`) add up to it (`x_OriginCost`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import duckdb

from lakehouse_core import duck
from lakehouse_core.domain.errors import NotFoundError
from lakehouse_core.finops.focus_columns import SUBCATEGORIES, columns, guess_version
from lakehouse_core.store.literals import literal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakehouse_core.finops.focus_columns import Column, Version

SHOWN = 20  # violations of one rule and column that are told in full
# Amounts have nine decimals: a product may differ by what rounding them costs.
_TOLERANCE = "(5e-9 + 1e-12 * abs({cost}))"

_TIME = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$"
_DECIMAL = r"^-?\d+(\.\d+)?([Ee]-?\d+)?$"
_UNIT = r"^(\d+ )?[A-Za-z][A-Za-z ]*s?([-/](\d+ )?[A-Z][A-Za-z ]*)?$"


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One broken rule; `row` counts from 1 without the header, None: the whole file."""

    rule: str
    column: str | None
    row: int | None
    value: str | None
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the checker found.

    Attributes:
        violations: at most twenty per rule and column.
        broken: all of them, counted.
        totals: sums of the cost columns per currency, as the file has them.
    """

    version: Version
    rows: int
    columns: tuple[str, ...]
    broken: int
    violations: tuple[Violation, ...]
    totals: tuple[dict[str, object], ...]

    @property
    def is_ok(self) -> bool:
        """Whether the file keeps every rule."""
        return not self.broken


@dataclass(frozen=True, slots=True)
class _Rule:
    """A rule about rows: the SQL condition that a row breaks it by."""

    name: str
    column: str
    broken: str
    message: str


def check_file(path: Path, version: Version | None = None) -> Verdict:
    """Check a CSV or Parquet file.

    Raises:
        NotFoundError: there is no such file, or it is neither.
    """
    if not path.is_file():
        raise NotFoundError(f"There is no file {path}. Export one: lakehelm export focus --out F")
    with duck.connect() as connection:
        names = _load(connection, path)
        known = columns(version or guess_version(set(names)))
        found = [*_header(names, known)]
        broken = len(found)
        for rule in _rules(set(names), known):
            amount, rows = _broken(connection, rule)
            broken += amount
            found += rows
        totals = _totals(connection, set(names))
        (rows_total,) = connection.execute("SELECT count(*) FROM charge").fetchone() or (0,)
    return Verdict(
        version=version or guess_version(set(names)),
        rows=int(rows_total),
        columns=tuple(names),
        broken=broken,
        violations=tuple(found),
        totals=totals,
    )


def _load(connection: duckdb.DuckDBPyConnection, path: Path) -> list[str]:
    """The file as a table of texts, each row with its number."""
    source = literal(str(path))
    if path.suffix.lower() == ".parquet":
        scan = f"read_parquet({source}, file_row_number = true)"
        number = "file_row_number + 1"
    else:
        scan = f"read_csv({source}, header = true, all_varchar = true, nullstr = '')"
        number = "row_number() OVER ()"
    try:
        described = connection.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()  # noqa: S608 a literal
    except duckdb.Error as error:
        first = str(error).splitlines()[0]
        raise NotFoundError(f"{path} cannot be read as CSV or Parquet: {first}") from error
    kept = [(name, kind) for name, kind, *_ in described if name != "file_row_number"]
    texts = ", ".join(f"{_text(name, kind)} AS {_quoted(name)}" for name, kind in kept)
    connection.execute(
        f"CREATE TEMP TABLE charge AS SELECT {number} AS row_number, {texts} FROM {scan}"  # noqa: S608 quoted
    )
    return [name for name, _ in kept]


def _text(name: str, kind: str) -> str:
    column = _quoted(name)
    if kind.startswith("TIMESTAMP"):
        # A time with a zone in Parquet is UTC, whatever the session's zone is.
        zoned = f"({column} AT TIME ZONE 'UTC')" if "ZONE" in kind else column
        return f"strftime({zoned}, '%Y-%m-%dT%H:%M:%SZ')"
    return f"{column}::VARCHAR"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _header(names: list[str], known: dict[str, Column]) -> Iterator[Violation]:
    for column in known.values():
        if column.is_mandatory and column.name not in names:
            yield Violation(
                rule="column.missing", column=column.name, row=None, value=None,
                message=f"{column.name} is mandatory",
            )  # fmt: skip
    has_custom = False
    for name in names:
        is_custom = name.startswith("x_")
        if not is_custom and name not in known:
            yield Violation(
                rule="column.unknown", column=name, row=None, value=None,
                message=f"{name} is no FOCUS column; a column of one's own begins with x_",
            )  # fmt: skip
        if has_custom and not is_custom:
            yield Violation(
                rule="column.order", column=name, row=None, value=None,
                message=f"{name} stands behind columns that are not of FOCUS",
            )  # fmt: skip
        has_custom = has_custom or is_custom


def _rules(names: set[str], known: dict[str, Column]) -> Iterator[_Rule]:
    """The rules that the columns of the file allow to check."""
    for column in known.values():
        if column.name in names:
            yield from _column_rules(column, is_usage_known="ChargeCategory" in names)
    if {"ChargePeriodStart", "ChargePeriodEnd"} <= names:
        yield _Rule("period", "ChargePeriodEnd", '"ChargePeriodEnd" <= "ChargePeriodStart"',
                    "the charge period must end after it starts")  # fmt: skip
    if {"BillingPeriodStart", "BillingPeriodEnd", "ChargePeriodStart", "ChargePeriodEnd"} <= names:
        outside = (
            '"ChargePeriodStart" < "BillingPeriodStart" OR "ChargePeriodEnd" > "BillingPeriodEnd"'
        )
        yield _Rule("period", "ChargePeriodStart", outside,
                    "the charge must lie in its billing period")  # fmt: skip
    for kind in ("List", "Contracted"):
        price, cost = f"{kind}UnitPrice", f"{kind}Cost"
        if {price, cost, "PricingQuantity"} <= names:
            off = (
                f"abs({_double(price)} * {_double('PricingQuantity')} - {_double(cost)}) "
                f"> {_TOLERANCE.format(cost=_double(cost))} AND {_is_plain(names)}"
            )
            yield _Rule(f"product.{kind.lower()}", cost, off,
                        f"{price} times PricingQuantity must be {cost}")  # fmt: skip
    if {"ServiceCategory", "ServiceSubcategory"} <= names:
        parents = " ".join(
            f"WHEN {literal(sub)} THEN {literal(parent)}" for sub, parent in SUBCATEGORIES.items()
        )
        wrong = f'CASE "ServiceSubcategory" {parents} END <> "ServiceCategory"'
        yield _Rule("subcategory", "ServiceSubcategory", wrong,
                    "the subcategory belongs to another category")  # fmt: skip
    if {"AllocatedMethodId", "AllocatedResourceId"} <= names:
        wrong = '("AllocatedMethodId" IS NULL) <> ("AllocatedResourceId" IS NULL)'
        yield _Rule("allocation", "AllocatedResourceId", wrong,
                    "an allocated row has a method and a resource, others neither")  # fmt: skip
    if {"x_OriginChargeId", "x_OriginCost", "EffectiveCost"} <= names:
        of_origin = 'OVER (PARTITION BY "x_OriginChargeId")'
        wrong = (
            f"sum({_number('EffectiveCost')}) {of_origin} <> {_number('x_OriginCost')}"
            ' AND "x_OriginChargeId" IS NOT NULL'
        )
        yield _Rule("sum.origin", "EffectiveCost", wrong,
                    "the rows of this origin charge do not add up to it")  # fmt: skip


def _column_rules(column: Column, *, is_usage_known: bool) -> Iterator[_Rule]:
    name, quoted = column.name, _quoted(column.name)
    if not column.nullable:
        yield _Rule("null", name, f"{quoted} IS NULL", f"{name} must have a value")
    elif column.priced and is_usage_known:
        yield _Rule("priced", name, f"{quoted} IS NULL AND {_usage()}",
                    f"{name} must have a value in a row of usage")  # fmt: skip
    yield _Rule("empty", name, f"{quoted} = ''", "no value is NULL, not an empty text")
    if column.allowed:
        values = ", ".join(literal(value) for value in column.allowed)
        yield _Rule("allowed", name, f"{quoted} NOT IN ({values})",
                    f"{name} is one of: {', '.join(column.allowed)}")  # fmt: skip
    is_time = f"regexp_matches({quoted}, {literal(_TIME)})"
    as_object = f"CASE WHEN json_valid({quoted}) THEN json_type({quoted}) END"
    shapes = {
        "time": (
            f"NOT {is_time} OR try_cast({quoted} AS TIMESTAMPTZ) IS NULL",
            "a time is YYYY-MM-DDTHH:mm:ssZ",
        ),
        "decimal": (_not_decimal(quoted), "a number has digits, one point, no other characters"),
        "price": (
            f"{_not_decimal(quoted)} OR {_number(name)} < 0",
            "a unit price is a number that is not negative",
        ),
        "currency": (
            f"NOT regexp_matches({quoted}, '^[A-Z]{{3}}$')",
            "a currency is a code of ISO 4217",
        ),
        "json": (f"{as_object} IS DISTINCT FROM 'OBJECT'", "a JSON object"),
        "unit": (
            f"NOT regexp_matches({quoted}, {literal(_UNIT)})",
            "a unit is like Hours, GB-Months or 1000 Requests",
        ),
    }
    if column.kind in shapes:
        broken, message = shapes[column.kind]
        yield _Rule(column.kind, name, f"{quoted} IS NOT NULL AND ({broken})", message)


def _usage() -> str:
    return "\"ChargeCategory\" IN ('Usage', 'Purchase') AND \"ChargeClass\" IS NULL"


def _is_plain(names: set[str]) -> str:
    """Corrections may disagree with their prices."""
    return '"ChargeClass" IS NULL' if "ChargeClass" in names else "true"


def _not_decimal(quoted: str) -> str:
    return (
        f"NOT regexp_matches({quoted}, {literal(_DECIMAL)}) "
        f"OR try_cast({quoted} AS DECIMAL(38, 18)) IS NULL"
    )


def _number(name: str) -> str:
    return f"try_cast({_quoted(name)} AS DECIMAL(38, 18))"


def _double(name: str) -> str:
    return f"try_cast({_quoted(name)} AS DOUBLE)"


def _broken(connection: duckdb.DuckDBPyConnection, rule: _Rule) -> tuple[int, list[Violation]]:
    marked = (
        f"SELECT row_number, {_quoted(rule.column)} AS seen, ({rule.broken}) AS broken FROM charge"  # noqa: S608 ours
    )
    rows = connection.execute(
        f"SELECT row_number, seen, count(*) OVER () FROM ({marked}) WHERE broken "  # noqa: S608 ours
        f"ORDER BY row_number LIMIT {SHOWN}"
    ).fetchall()
    found = [
        Violation(
            rule=rule.name, column=rule.column, row=int(number), value=value, message=rule.message
        )
        for number, value, _ in rows
    ]
    return (int(rows[0][2]) if rows else 0), found


def _totals(
    connection: duckdb.DuckDBPyConnection, names: set[str]
) -> tuple[dict[str, object], ...]:
    costs = [n for n in ("BilledCost", "ListCost", "ContractedCost", "EffectiveCost") if n in names]
    if "BillingCurrency" not in names or not costs:
        return ()
    sums = ", ".join(f"sum({_number(name)}) AS {name}" for name in costs)
    table = connection.execute(
        f'SELECT "BillingCurrency", {sums} FROM charge GROUP BY 1 ORDER BY 1'  # noqa: S608 ours
    ).to_arrow_table()
    return tuple(table.to_pylist())
