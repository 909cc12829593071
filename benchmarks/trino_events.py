"""Trino's completed events, JSON bytes to rows of the store, on one core.

    python benchmarks/trino_events.py --json [--events 6000]

The events are those a real Trino 476 pushed (tests/integration/fixtures/trino), 5 to 384 kB each,
all equally often, with a new query id every time: texts repeat, as those of dashboards do. A second
run gives each event a comment of its own, so that no text is met twice. Side by side in one run:
the same events through a general JSON decoder and one record per event.

Seconds are processor time of this process, the best of some rounds: what one core can do.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import zstandard

from collectors.trino.listener import ListenerSettings, TrinoIntake
from collectors.trino.mapping import to_observed
from collectors.understanding import Understanding
from lakehouse_core.domain.query import EngineId
from lakehouse_core.gateway.intake import Delivery

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LIMITS = {"events_per_second": 20_000}
FIXTURE = Path(__file__).parents[1] / "tests/integration/fixtures/trino/listener.jsonl.zst"
GROUP = 1_000  # events in one write of a busy gateway
ROUNDS = 3
TRINO = EngineId("trino")
URL = "http://trino.example:8080"


def recorded() -> list[bytes]:
    packed = FIXTURE.read_bytes()
    text = zstandard.ZstdDecompressor().decompress(packed, max_output_size=2**27)
    return [line for line in text.splitlines() if b'"statistics":{' in line]


def made(count: int, seed: int, *, fresh: bool) -> list[bytes]:
    """Events with ids of their own; `fresh`: with a text of their own, too."""
    chosen = random.Random(seed)  # noqa: S311 no secret
    bodies = recorded()
    events = []
    for number, body in enumerate(chosen.choices(bodies, k=count)):
        start = body.index(b'"queryId":"') + len(b'"queryId":"')
        end = body.index(b'"', start)
        event = body[:start] + f"20261116_000000_{number:06}_bench".encode() + body[end:]
        if fresh:
            text = event.index(b'"query":"') + len(b'"query":"')
            event = event[:text] + f"/* {number} */ ".encode() + event[text:]
        events.append(event)
    return events


def plain(bodies: Sequence[bytes]) -> pa.Table:
    """Every byte decoded, an object per event: the straight way."""
    understanding = Understanding()
    observed = []
    now = datetime.now(UTC)
    for body in bodies:
        event: dict[str, Any] = json.loads(body)
        took, metadata = event["statistics"], event["metadata"]
        failure = event.get("failureInfo") or {}
        basic = {
            "queryId": metadata["queryId"],
            "state": metadata["queryState"],
            "query": metadata["query"],
            "session": event["context"],
            "errorCode": failure.get("errorCode"),
            "failureInfo": {"message": failure.get("failureMessage")},
            "inputs": event["ioMetadata"]["inputs"],
            "queryStats": {
                "createTime": event["createTime"],
                "executionStartTime": event["executionStartTime"],
                "endTime": event["endTime"],
                "queuedTime": f"{took['queuedTime']}s",
                "totalCpuTime": f"{took['cpuTime']}s",
                "physicalInputDataSize": took["physicalInputBytes"],
                "physicalInputPositions": took["physicalInputRows"],
            },
        }
        observed.append(to_observed(TRINO, URL, basic, None, now))
    return understanding.rows(observed)["query_event"]


def rate(map_group: Callable[[Sequence[bytes]], int], bodies: Sequence[bytes]) -> float:
    """Events per second of processor time, the best of some rounds."""
    best = 0.0
    for _ in range(ROUNDS):
        gc.collect()
        start = time.process_time()
        rows = sum(map_group(bodies[at : at + GROUP]) for at in range(0, len(bodies), GROUP))
        best = max(best, len(bodies) / (time.process_time() - start))
        assert rows == len(bodies), f"{rows} rows of {len(bodies)} events"
    return best


def measure(count: int, seed: int) -> dict[str, Any]:
    pa.set_cpu_count(1)
    settings = ListenerSettings(engine_id=TRINO, url=URL)

    def ours() -> Callable[[Sequence[bytes]], int]:
        intake = TrinoIntake([settings], Understanding())

        def map_group(bodies: Sequence[bytes]) -> int:
            mapped = intake.map([Delivery({}, body) for body in bodies])
            return int(mapped.rows["query_event"].num_rows)

        return map_group

    repeated = made(count, seed, fresh=False)
    fresh = made(count // 3, seed, fresh=True)
    few = repeated[: max(count // 10, 100)]
    megabytes = sum(map(len, repeated)) / 2**20
    mapped = rate(ours(), repeated)
    straight = rate(lambda bodies: plain(bodies).num_rows, few)
    figures = {"events_per_second": round(mapped)}
    return {
        "benchmark": "trino_events",
        "events": count,
        "mean_event_bytes": round(megabytes * 2**20 / count),
        "events_per_second": round(mapped),
        "megabytes_per_second": round(mapped * megabytes / count),
        "events_per_second_new_texts": round(rate(ours(), fresh)),
        "straight_events_per_second": round(straight),
        "ratio_to_straight": round(mapped / straight, 1),
        "figures": figures,
        "limits": LIMITS,
        "ok": all(figures[name] >= limit for name, limit in LIMITS.items()),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=6_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    chosen = parser.parse_args()
    result = measure(chosen.events, chosen.seed)
    print(json.dumps(result, indent=None if chosen.json else 2))
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
