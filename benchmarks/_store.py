"""A store to measure: filled once in a folder of its own, served by a process of its own.

What the benchmarks of the store and of the pages share: the invented history, how a store is
filled, kept and served, how visits are timed, and how the figures are told.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import socket
import statistics
import tempfile
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakehouse_core.config import load_config
from lakehouse_core.store.owner import OwnerStore, Tokens

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Mapping
    from multiprocessing.synchronize import Event

    from lakehouse_core.config.models import Config, StoreConfig

ROOT = Path(__file__).parents[1]
TOKENS = Tokens("writer-of-a-benchmark", "reader-of-a-benchmark")
START = datetime(2026, 11, 1, tzinfo=UTC)
VISITS = 5
CHUNK = 1_000_000

# One row per number: few templates run often, many seldom; texts differ in their literal only.
EVENTS = """
SELECT ['duckdb', 'spark', 'trino'][i % 3 + 1] AS engine_id,
  strftime(moment, '%Y%m%d_%H%M%S_') || lpad(i::VARCHAR, 9, '0') AS query_id,
  CASE WHEN i % 20 = 0 THEN 'failed' ELSE 'finished' END AS status,
  moment AS submitted_at, moment + INTERVAL 10 SECONDS AS collected_at, 2::TINYINT AS revision,
  'trino' AS dialect,
  'SELECT l_returnflag, sum(l_quantity) FROM lake.tpch.lineitem WHERE l_orderkey = ' || i
    || ' GROUP BY 1 ORDER BY 1' AS sql_text, 'select' AS statement_kind,
  md5(floor(500 * pow(hash(i + 4) % 100000 / 100000, 3))::INTEGER::VARCHAR) AS template_id,
  'user' || hash(i + 5) % 50 AS user_name, 'bi' AS source, 'group' || i % 5 AS workload_group,
  ['team:' || i % 7, 'demo'] AS tags, moment AS started_at,
  moment + to_milliseconds(hash(i) % 5000) AS ended_at, hash(i) % 100 / 10 AS queued_ms,
  hash(i + 1) % 5000 / 10 AS execution_ms, exp(hash(i + 2) % 9000 / 1000) AS elapsed_ms,
  hash(i + 3) % 5000 / 10 AS cpu_ms, (hash(i) % 1000000000)::BIGINT AS bytes_scanned,
  (hash(i) % 1000000)::BIGINT AS rows_scanned, i % 1000 AS rows_returned,
  (hash(i) % 100000000)::BIGINT AS peak_memory_bytes, [i, i + 1]::BIGINT[] AS snapshot_ids,
  'simulated' AS origin, 'history' AS reporter
FROM (SELECT range AS i, $start::TIMESTAMPTZ + to_microseconds(range * $step::BIGINT) AS moment
  FROM range($first::BIGINT, $last::BIGINT))
"""


def free_port() -> int:
    """A port that nobody listens on; the store takes the one after it, too."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return min(int(probe.getsockname()[1]), 65_000)


def demo_config(folder: Path, environ: Mapping[str, str] | None = None) -> Config:
    """The demo's configuration in a folder of its own."""
    own = {"LAKEHELM_HOME": str(folder), "LAKEHELM__STORE__PORT": str(free_port())}
    return load_config(ROOT / "config" / "lakehelm.yaml", {**own, **(environ or {})}).config


def chunks(total: int, size: int = CHUNK) -> Iterator[dict[str, int]]:
    """The numbers up to a total, some at a time: the first of them and the one after the last."""
    for first in range(0, total, size):
        yield {"first": first, "last": min(first + size, total)}


def filled(config: StoreConfig, fill: Callable[[OwnerStore], None]) -> dict[str, int]:
    """Fill the store that is not there yet; how long that took."""
    if config.path.exists():
        return {}
    begin = time.perf_counter()
    with OwnerStore.open(config) as store:
        fill(store)
    return {"filled_in_seconds": round(time.perf_counter() - begin)}


@contextmanager
def served(config: StoreConfig) -> Iterator[int]:
    """Serve the store from another process, as in the product; gives its id."""
    spawn = multiprocessing.get_context("spawn")
    ready, ended = spawn.Event(), spawn.Event()
    owner = spawn.Process(target=_own, args=(config, ready, ended))
    owner.start()
    try:
        assert ready.wait(120), "the owner did not start"
        yield owner.pid or 0
    finally:
        ended.set()
        owner.join(60)


def _own(config: StoreConfig, ready: Event, ended: Event) -> None:
    with OwnerStore.open(config, tokens=TOKENS):
        ready.set()
        ended.wait()


def cpu_ms(pid: int) -> float:
    """Processor time of a process so far, its own and the system's for it."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") * 1000


def milliseconds(work: Callable[[], object], owner: int) -> tuple[float, float]:
    """Median time of a visit, and the owner's processor time for one."""
    spent = []
    before = cpu_ms(owner)
    for _ in range(VISITS):
        start = time.perf_counter()
        work()
        spent.append((time.perf_counter() - start) * 1000)
    return statistics.median(spent), (cpu_ms(owner) - before) / VISITS


Visits = dict[str, dict[str, tuple[float, float]]]


def by_window(seen: Visits) -> dict[str, Any]:
    """Window → page → what `milliseconds` says, as figures."""
    return {
        name: {
            window: {page: round(spent[number]) for page, spent in one.items()}
            for window, one in seen.items()
        }
        for number, name in enumerate(("windows_ms", "owner_cpu_ms"))
    }


def worst(seen: Visits, *pages: str) -> int:
    """The longest of some pages over all windows."""
    return round(max(one[page][0] for one in seen.values() for page in pages))


def add_options(parser: argparse.ArgumentParser) -> None:
    """What the benchmarks of pages can be told."""
    parser.add_argument("--store", type=Path, help="a folder to keep the store in, and use again")
    add_json(parser)


def add_json(parser: argparse.ArgumentParser) -> None:
    """The option that every benchmark has."""
    parser.add_argument("--json", action="store_true", help="one line instead of an indented text")


@contextmanager
def folder_of(kept: Path | None = None) -> Iterator[Path]:
    """The folder to keep, else one that is gone afterwards."""
    if kept is not None:
        yield kept.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="lakehelm-bench-") as folder:
        yield Path(folder)


def tell(
    name: str,
    found: Mapping[str, Any],
    limits: Mapping[str, float],
    is_ok: bool,
    is_line: bool,
) -> int:
    """Print the figures; the exit code."""
    result = {
        "benchmark": name,
        **found,
        "load_average": os.getloadavg()[0],
        "figures": {figure: found[figure] for figure in limits},
        "limits": limits,
        "ok": is_ok,
    }
    print(json.dumps(result, indent=None if is_line else 2))
    return 0 if is_ok else 1
