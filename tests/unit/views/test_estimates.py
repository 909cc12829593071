"""What was estimated before reads ran, against what engines say they read."""

from __future__ import annotations

import pytest

from lakehouse_core.views.estimates import EngineEstimates, scan_estimates
from tests.unit.views.conftest import Shelf, clock
from tests.unit.views.past import ran

pytestmark = pytest.mark.slow


def by_engine(store: Shelf, window: str = "24h") -> dict[str, EngineEstimates]:
    return {one.engine_id: one for one in scan_estimates(store, clock, window=window).engines}


def test_ratios_are_of_what_was_read_and_too_low_ones_are_counted(store: Shelf) -> None:
    told = {"estimated_bytes": 1_000, "estimated_files": 0}
    for read in (100, 200, 300, 400, 1_500):
        ran(store, f"t{read}", "trino", [1.0], bytes_scanned=read, **told)
    ran(store, "t1", "duckdb", [1.0] * 3, bytes_scanned=1_000, **told)
    found = by_engine(store)
    trino, duckdb = found["trino"], found["duckdb"]
    assert (trino.reads, trino.estimated, trino.compared, trino.too_low) == (5, 5, 5, 1)
    assert (trino.estimated_bytes, trino.read_bytes) == (5_000, 2_500)
    assert trino.p50_ratio == pytest.approx(0.3)
    assert trino.p05_ratio == pytest.approx(0.12)
    assert trino.p95_ratio == pytest.approx(1.28)
    assert (duckdb.p05_ratio, duckdb.p95_ratio, duckdb.too_low) == (1.0, 1.0, 0)


def test_footers_that_are_read_twice_are_no_estimate_told_too_low(store: Shelf) -> None:
    told = {"estimated_bytes": 30_000, "estimated_files": 20}
    ran(store, "t1", "duckdb", [1.0] * 2, bytes_scanned=40_000, **told)
    assert by_engine(store)["duckdb"].too_low == 0
    ran(store, "t2", "duckdb", [1.0], bytes_scanned=30_001 + 20 * 16 * 1024, **told)
    assert by_engine(store)["duckdb"].too_low == 1


def test_what_cannot_be_compared_is_counted_and_in_no_ratio(store: Shelf) -> None:
    ran(store, "t1", "trino", [1.0] * 2, group="interactive", bytes_scanned=500)  # no estimate
    ran(store, "t2", "trino", [1.0] * 3, estimated_bytes=1_000, bytes_scanned=None)
    ran(store, "t3", "trino", [1.0], estimated_bytes=0, bytes_scanned=0)
    (trino,) = by_engine(store).values()
    assert (trino.reads, trino.estimated, trino.compared) == (6, 4, 1)
    assert (trino.estimated_bytes, trino.read_bytes, trino.too_low) == (0, 0, 0)
    assert trino.p50_ratio is None


def test_reads_past_the_gateway_failures_writes_and_other_times_are_left_out(store: Shelf) -> None:
    ran(store, "t1", "trino", [1.0], bytes_scanned=500)  # past the gateway
    ran(store, "t2", "trino", [1.0], failed=1, estimated_bytes=10, bytes_scanned=500)
    ran(store, "t3", "trino", [1.0], estimated_bytes=10, bytes_scanned=500, statement_kind="insert")
    assert by_engine(store) == {}
    ran(store, "t4", "trino", [1.0] * 90, estimated_bytes=10, bytes_scanned=5)
    assert by_engine(store, "1h")["trino"].reads < by_engine(store, "24h")["trino"].reads
