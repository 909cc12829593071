"""What people take along: tables of the pages as CSV, the Grafana dashboard."""

from __future__ import annotations

import csv
import io
import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse_core.views.costs import CostReport

_DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}


def report_csv(report: CostReport) -> str:
    """The rows of a cost report; every row has its currency, window and basis."""
    rows = []
    for row in report.rows:
        names = dict(zip(report.by, (row.first, row.second), strict=False))
        rows.append(
            {
                **names,
                "cost": row.cost,
                "cost_before": row.before,
                "currency": report.currency,
                "queries": row.queries,
                "failed_cost": row.failed_cost,
                "list_cost": row.list_cost,
                "provisional_cost": row.provisional_cost,
                "basis": "+".join(row.bases),
                "window_start": report.start.isoformat(),
                "window_end": report.window.end.isoformat(),
            }
        )
    return to_csv(rows)


def to_csv(rows: Sequence[dict[str, Any]]) -> str:
    """Rows with a header; numbers with plain digits, nothing for what is not known.

    A text that a spreadsheet would take for a formula is quoted with an apostrophe.
    """
    out = io.StringIO()
    names = list(rows[0]) if rows else []
    writer = csv.DictWriter(out, fieldnames=names, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _cell(value) for name, value in row.items()})
    return out.getvalue()


def _cell(value: object) -> object:
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return value


def dashboard_text() -> str:
    """A dashboard over the cost metrics of `/metrics`, for any Prometheus."""
    panels = [
        _panel(1, "stat", "What did the last 24 hours cost?", f"sum({_spend('24h')})", 0, 0),
        _panel(2, "stat", "How much of it was idle?", _idle("24h"), 8, 0, unit="percentunit"),
        _panel(3, "stat", "What has no price or owner?", _unallocated("24h"), 16, 0),
        _panel(4, "timeseries", "What does each engine cost per hour?",
               f"sum by (engine) ({_spend('1h')})", 0, 6, legend="{{engine}}", width=12),
        _panel(5, "timeseries", "What does each workload cost per hour?",
               f"sum by (workload) ({_spend('1h')})", 12, 6, legend="{{workload}}", width=12),
        _panel(6, "timeseries", "What do 1,000 queries cost?",
               f"1000 * sum by (engine) ({_spend('1h')}) / sum by (engine) "
               '(increase(lakehouse_queries_total{engine=~"$engine"}[1h]))',
               0, 15, legend="{{engine}}", width=24),
    ]  # fmt: skip
    dashboard = {
        "title": "Lakehelm: costs",
        "uid": "lakehelm-costs",
        "tags": ["lakehelm", "finops"],
        "timezone": "utc",
        "schemaVersion": 39,
        "refresh": "1m",
        "time": {"from": "now-7d", "to": "now"},
        "templating": {
            "list": [
                {"name": "datasource", "type": "datasource", "query": "prometheus"},
                {
                    "name": "engine",
                    "type": "query",
                    "datasource": _DATASOURCE,
                    "query": "label_values(lakehouse_cost_total, engine)",
                    "includeAll": True,
                    "multi": True,
                    "refresh": 2,
                },
            ]
        },
        "panels": panels,
    }
    return json.dumps(dashboard, indent=2) + "\n"


def _spend(span: str, more: str = "") -> str:
    return f'increase(lakehouse_cost_total{{engine=~"$engine"{more}}}[{span}])'


def _idle(span: str) -> str:
    idle = _spend(span, ', kind="idle"')
    return f"sum({idle}) / sum({_spend(span)})"


def _unallocated(span: str) -> str:
    left = _spend(span, ', kind="unallocated"')
    return f"sum({left})"


def _panel(  # noqa: PLR0913 a panel is what it is
    number: int,
    kind: str,
    title: str,
    expression: str,
    left: int,
    top: int,
    *,
    unit: str = "currencyUSD",
    legend: str = "",
    width: int = 8,
) -> dict[str, Any]:
    return {
        "id": number,
        "type": kind,
        "title": title,
        "datasource": _DATASOURCE,
        "gridPos": {"x": left, "y": top, "w": width, "h": 6 if kind == "stat" else 9},
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "targets": [{"refId": "A", "expr": expression, "legendFormat": legend or "__auto"}],
    }
