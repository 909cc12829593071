"""Which tables the store has, and what makes two rows the same row.

The upsert path reads this instead of PRIMARY KEY constraints (see migrations/0001_core.sql).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fold:
    """How reports of several observers about one row are weighed (fold.py).

    Attributes:
        reporters: who reports, the least trusted first.
        gateway: columns of which the gateway knows more than any engine, whenever it speaks.
        outcome: columns that are known to be empty once a query has finished.
        lists: columns in which an empty list means unknown.
    """

    reporters: tuple[str, ...]
    gateway: tuple[str, ...]
    outcome: tuple[str, ...]
    lists: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StoreTable:
    """Key and freshness rules of one table.

    Attributes:
        name: the table.
        key: columns that identify a row.
        revision: a row replaces its namesake only when this column is not smaller; None: always.
        stable_time: a column that never changes for a key: bounds what an upsert must look at.
        retention_time: rows older than the retention by this column are dropped, but for those that
            are still true (retention.py); None: kept.
        is_ledger: what was spent; kept as long as costs are, not only as long as queries.
        noise: columns that alone do not make a row different (when we looked, not what we saw).
        fold: rows are put together from several reports; None: a row replaces its namesake.
        blank: text columns that are empty where a batch (an older one in a spool) has no value.
    """

    name: str
    key: tuple[str, ...]
    revision: str | None = None
    stable_time: str | None = None
    retention_time: str | None = None
    noise: tuple[str, ...] = ()
    fold: Fold | None = None
    blank: tuple[str, ...] = ()
    is_ledger: bool = False


# What the names of tables in a text were completed with; empty: with nothing.
_DEFAULTS = ("default_catalog", "default_namespace")

_GATEWAY_KNOWS = (
    "dialect", "sql_text", "translated_sql", "statement_kind", "template_id", "default_catalog",
    "default_namespace", "user_name", "source", "tags", "workload_group",
)  # fmt: skip

QUERY_FOLD = Fold(
    reporters=("inferred", "gateway", "history", "listener"),
    gateway=_GATEWAY_KNOWS,
    outcome=("error_class", "error_code", "error_message"),
    lists=("tags", "snapshot_ids"),
)

TABLES: dict[str, StoreTable] = {
    table.name: table
    for table in (
        StoreTable("engine", ("engine_id",)),
        StoreTable(
            "engine_probe",
            ("engine_id", "probed_at"),
            stable_time="probed_at",
            retention_time="probed_at",
        ),
        StoreTable(
            "query_event",
            ("engine_id", "query_id"),
            revision="revision",
            retention_time="submitted_at",
            noise=("collected_at",),
            fold=QUERY_FOLD,
        ),
        # A template of several dialects keeps the one it was first seen in.
        StoreTable("query_template", ("template_id",), noise=("seen_at", "dialect")),
        StoreTable(
            "column_usage",
            ("template_id", *_DEFAULTS, "table_name", "column_name", "role"),
            blank=_DEFAULTS,
        ),
        StoreTable(
            "column_literal",
            (
                "template_id",
                "table_name",
                "column_name",
                "role",
                "operator",
                "literal_kind",
                "part",
                "bucket",
            ),
            revision="revision",
        ),
        StoreTable(
            "metering",
            ("engine_id", "resource", "meter", "hour", "unit"),
            stable_time="hour",
            noise=("collected_at",),
        ),
        StoreTable(
            "query_attribution",
            ("engine_id", "query_id"),
            retention_time="started_at",
            noise=("collected_at",),
        ),
        StoreTable(
            "query_access",
            ("engine_id", "query_id", "table_name", "column_name", "access"),
            retention_time="accessed_at",
        ),
        StoreTable("lake_table", ("table_id",)),
        StoreTable(
            "table_metrics",
            ("table_id", "snapshot_id"),
            retention_time="collected_at",
            noise=("collected_at",),
        ),
        StoreTable("snapshot_commit", ("table_id", "snapshot_id"), retention_time="committed_at"),
        StoreTable(
            "health",
            ("table_id", "assessed_at"),
            stable_time="assessed_at",
            retention_time="assessed_at",
        ),
        StoreTable(
            "scan_report", ("report_id",), retention_time="received_at", noise=("received_at",)
        ),
        StoreTable(
            "commit_report", ("report_id",), retention_time="received_at", noise=("received_at",)
        ),
        StoreTable("flink_job", ("engine_id", "job_id"), revision="seen_at", noise=("seen_at",)),
        StoreTable(
            "flink_slot_time",
            ("engine_id", "job_id", "started_at"),
            revision="ended_at",
            stable_time="started_at",
            retention_time="ended_at",
        ),
        StoreTable(
            "flink_checkpoint",
            ("engine_id", "job_id", "checkpoint_id"),
            revision="revision",
            stable_time="triggered_at",
            retention_time="triggered_at",
        ),
        StoreTable("agent_run", ("run_id",), retention_time="started_at"),
        StoreTable("agent_state", ("agent",)),
        StoreTable("agent_request", ("request_id",), retention_time="asked_at"),
        StoreTable("agent_progress", ("agent",)),
        StoreTable(
            "query_hour",
            ("hour_at", "engine_id", "status", "origin", "duration_class"),
            stable_time="hour_at",
            retention_time="hour_at",
        ),
        StoreTable(
            "template_hour", ("hour_at", "template_id", "engine_id"), retention_time="hour_at"
        ),
        StoreTable("template_day", ("day_at", "template_id", "engine_id"), retention_time="day_at"),
        StoreTable(
            "workload_hour",
            ("hour_at", "template_id", "engine_id", "user_name", "source", "workload_group"),
            retention_time="hour_at",
        ),
        StoreTable(
            "usage_day",
            ("day", "table_name", "column_name", "role", "engine_id"),
            retention_time="day",
        ),
        StoreTable(
            "literal_day",
            ("day", "table_name", "column_name", "operator", "literal_kind", "engine_id"),
            retention_time="day",
        ),
        StoreTable("commit_hour", ("hour_at", "table_id"), retention_time="hour_at"),
        StoreTable("template_table", ("template_id", *_DEFAULTS, "table_name"), blank=_DEFAULTS),
        StoreTable("action", ("action_id",), revision="revision"),
        StoreTable("decision_request", ("request_id",), retention_time="asked_at"),
        StoreTable("engine_request", ("request_id",), retention_time="asked_at"),
        StoreTable("audit", ("seq",)),
        StoreTable("routing_decision", ("gateway_id",), retention_time="submitted_at"),
        StoreTable("route_regret", ("measure", "baseline")),
        StoreTable("route_trial", ("trial_id",), revision="revision"),
        StoreTable("query_audit", ("chain", "seq"), retention_time="noted_at"),
        StoreTable("saved_query", ("query_id",)),
        StoreTable("table_lease", ("table_id", "token")),
        StoreTable("savings", ("action_id", "engine_id", "template_id")),
        StoreTable("layout_advice", ("advice_id",), retention_time="advised_at"),
        StoreTable("layout_look", ("table_id",)),
        StoreTable("layout_proof", ("action_id", "template_id", "engine_id")),
        StoreTable("price", ("price_id",), noise=("known_at",)),
        StoreTable("bill_line", ("line_id",), noise=("imported_at", "import_id", "file_name")),
        StoreTable("bill_import", ("import_id",)),
        StoreTable(
            "charge",
            ("hour_at", "engine_id", "resource", "meter", "price_id"),
            stable_time="hour_at",
            retention_time="hour_at",
            noise=("computed_at",),
            is_ledger=True,
        ),
        StoreTable("cost_label", ("label_id",)),
        StoreTable(
            "cost_hour",
            (
                "hour_at",
                "engine_id",
                "resource",
                "meter",
                "price_id",
                "kind",
                "label_id",
                "reason",
                "currency",
            ),
            stable_time="hour_at",
            retention_time="hour_at",
            noise=("split_at",),
            is_ledger=True,
        ),
        StoreTable(
            "cost_query",
            ("hour_at", "engine_id", "query_id", "currency"),
            stable_time="hour_at",
            retention_time="hour_at",
        ),
        StoreTable(
            "cost_day",
            ("day_at", "engine_id", "resource", "meter", "kind", "label_id", "currency", "basis"),
            stable_time="day_at",
            retention_time="day_at",
            is_ledger=True,
        ),
        StoreTable(
            "cost_day_total", ("day_at", "currency"), retention_time="day_at", is_ledger=True
        ),
        StoreTable("alert", ("alert_id",), retention_time="raised_at"),
        StoreTable("store_recovery", ("recovered_at",), retention_time="recovered_at"),
        StoreTable("watermark", ("source",)),
        StoreTable(
            "dead_letter", ("source", "letter_id"), retention_time="seen_at", noise=("seen_at",)
        ),
    )
}
