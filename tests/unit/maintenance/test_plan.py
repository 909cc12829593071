"""Plans are data: exact arguments, the statement that says the same, a hash that binds both."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.config.models import Config
from lakehouse_core.domain.errors import MaintenanceError
from lakehouse_core.domain.maintenance import Change, Kind, plan_from_json, plan_to_json
from lakehouse_core.domain.table import MIB
from lakehouse_core.maintenance.plan import build_plan, plan_hash
from tests.factories import NOW, lake_table, table_metrics

if TYPE_CHECKING:
    from lakehouse_core.domain.maintenance import Plan
    from lakehouse_core.domain.table import TableMetrics

TARGET = 128 * MIB
CONFIG = Config.model_validate(
    {
        "version": 1,
        "catalogs": {"lake": {"type": "sqlite", "path": "/lake/c.db", "warehouse": "/lake/w"}},
        "engines": {},
    }
)
PARAMETERS: dict[Kind, dict[str, Any]] = {
    Kind.SORT: {"columns": ["region", {"column": "ts", "direction": "desc"}]},
    Kind.ZORDER: {"columns": ["region", "customer"]},
    Kind.HILBERT: {"columns": ["region", "customer"]},
    Kind.SET_SORT_ORDER: {"columns": ["region"]},
}


def _plan(
    kind: Kind,
    metrics: TableMetrics | None = None,
    *,
    parameters: dict[str, Any] | None = None,
    table_id: str = "lake.demo.orders",
) -> Plan:
    table = replace(lake_table(), table_id=table_id, table_uuid="u-1")
    chosen = PARAMETERS.get(kind, {}) if parameters is None else parameters
    return build_plan(kind, table, metrics or table_metrics(), CONFIG, parameters=chosen)


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_has_a_plan_that_survives_json(kind: Kind) -> None:
    plan = _plan(kind)
    assert plan.kind is kind
    assert plan.stages
    assert plan.table_uuid == "u-1"
    assert plan.preconditions
    assert plan_from_json(json.loads(json.dumps(plan_to_json(plan)))) == plan


def test_plain_small_files_are_put_together_by_our_own_writer() -> None:
    stage = _plan(Kind.COMPACT).stages[0]
    assert stage.procedure == "compact_files"
    assert stage.arguments["options"]["target-file-size-bytes"] == str(TARGET)
    assert stage.call == (
        "CALL `lake`.system.rewrite_data_files(table => '`lake`.`demo`.`orders`', "
        "strategy => 'binpack', options => map('target-file-size-bytes', '134217728', "
        "'min-input-files', '2', 'max-file-size-bytes', '1099511627776'))"
    )


def test_compaction_leaves_large_files_alone_and_a_sort_takes_them_all() -> None:
    """Else Iceberg takes files over 180 % of the target too, which nobody has counted."""
    options = _plan(Kind.COMPACT).stages[0].arguments["options"]
    assert int(options["max-file-size-bytes"]) > 600 * MIB
    ordered = _plan(Kind.ZORDER).stages[0].arguments["options"]
    assert "max-file-size-bytes" not in ordered


def test_the_size_a_table_asks_for_comes_before_the_configured_one() -> None:
    asked = replace(table_metrics(), target_file_bytes=512 * MIB)
    options = _plan(Kind.COMPACT, asked).stages[0].arguments["options"]
    assert options["target-file-size-bytes"] == str(512 * MIB)
    by_hand = _plan(Kind.COMPACT, asked, parameters={"target_file_bytes": 64 * MIB})
    assert by_hand.stages[0].arguments["options"]["target-file-size-bytes"] == str(64 * MIB)


def test_deletes_and_orders_are_left_to_iceberg() -> None:
    deleted = replace(table_metrics(), delete_files=3, position_delete_files=3)
    stage = _plan(Kind.COMPACT, deleted).stages[0]
    assert stage.procedure == "rewrite_data_files"
    assert stage.arguments["options"]["delete-file-threshold"] == "1"
    ordered = replace(table_metrics(), sort_order="region ASC NULLS FIRST")
    stage = _plan(Kind.COMPACT, ordered).stages[0]
    assert (stage.procedure, stage.arguments["strategy"]) == ("rewrite_data_files", "sort")


@pytest.mark.parametrize(
    "name", ["a.b", "it's", "back`tick", "semi;colon -- x", "new\nline", "${spark.home}", "ÄΩ"]
)
def test_names_are_data(name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"' if "." in name else name
    plan = _plan(Kind.COMPACT, table_id=f"lake.demo.{quoted}")
    assert plan.stages[0].arguments["table"] == f"`lake`.`demo`.`{name.replace('`', '``')}`"
    assert "\n" not in plan.stages[0].call
    assert "${" not in plan.stages[0].call
    assert plan.stages[0].call.count("'") - plan.stages[0].call.count("\\'") == 16
    column = _plan(Kind.ZORDER, parameters={"columns": [name, "b"]}).stages[0]
    assert column.arguments["sort_order"] == f"zorder(`{name.replace('`', '``')}`, `b`)"


def test_a_sort_keeps_its_order_for_the_writers_to_come() -> None:
    first, second = _plan(Kind.SORT).stages
    assert first.procedure == "set_sort_order"
    assert first.call == (
        "ALTER TABLE `lake`.`demo`.`orders` WRITE ORDERED BY "
        "`region` ASC NULLS FIRST, `ts` DESC NULLS LAST"
    )
    assert second.arguments["sort_order"] == "`region` ASC NULLS FIRST, `ts` DESC NULLS LAST"
    assert second.arguments["options"]["rewrite-all"] == "true"


def test_expiry_keeps_the_configured_age_and_number() -> None:
    stage = _plan(Kind.EXPIRE_SNAPSHOTS, parameters={"retain_last": 1}).stages[0]
    assert stage.arguments["retain_last"] == CONFIG.maintenance.min_snapshots
    assert stage.arguments["older_than"] == (NOW - timedelta(days=5)).isoformat()
    assert f"TIMESTAMP '{NOW - timedelta(days=5):%Y-%m-%d %H:%M:%S}" in stage.call


def test_orphans_are_listed_before_any_is_deleted() -> None:
    rehearsal, removal = _plan(Kind.REMOVE_ORPHANS).stages
    assert (rehearsal.arguments["dry_run"], removal.arguments["dry_run"]) == (True, False)
    assert removal.arguments["prefix_mismatch_mode"] == "ERROR"


def test_what_is_large_enough_is_not_counted_as_input() -> None:
    metrics = replace(
        table_metrics(),
        data_files=12,
        total_bytes=10 * 2 * MIB + 2 * 600 * MIB,
        file_size_histogram=(0, 10, 0, 0, 0, 2),
    )
    plan = _plan(Kind.COMPACT, metrics)
    assert plan.stages[0].estimate["input_files"] == 10
    assert 20 * MIB <= plan.input_bytes <= metrics.total_bytes - 2 * 512 * MIB


def test_partitions_just_written_are_named() -> None:
    chosen = [{"day": 20_000, "region": "o'r\n"}]
    stage = _plan(Kind.COMPACT, parameters={"partitions": chosen}).stages[0]
    assert stage.arguments["partitions"] == chosen
    assert "\n" not in stage.call


def test_the_hash_binds_plan_snapshot_and_prediction() -> None:
    plan = _plan(Kind.COMPACT)
    change = Change(name="data_files", unit="files", before=10, after=1)
    hashes = {
        plan_hash(plan),
        plan_hash(plan, [change]),
        plan_hash(plan, [replace(change, after=2)]),
        plan_hash(replace(plan, base_snapshot_id=99), [change]),
        plan_hash(replace(plan, table_uuid="u-2"), [change]),
    }
    assert len(hashes) == 5
    assert plan_hash(plan_from_json(plan_to_json(plan)), [change]) == plan_hash(plan, [change])


@pytest.mark.parametrize(
    ("kind", "parameters", "word"),
    [
        (Kind.COMPACT, {"colums": ["a"]}, "colums"),
        (Kind.SORT, {}, "columns"),
        (Kind.SORT, {"columns": [{"column": "a", "direction": "up"}]}, "UP"),
    ],
)
def test_wrong_parameters_are_named(kind: Kind, parameters: dict[str, Any], word: str) -> None:
    with pytest.raises(MaintenanceError, match=word):
        _plan(kind, parameters=parameters)


def test_a_table_that_was_never_read_has_no_plan() -> None:
    with pytest.raises(MaintenanceError, match="not read"):
        build_plan(Kind.COMPACT, replace(lake_table(), table_uuid=None), table_metrics(), CONFIG)
