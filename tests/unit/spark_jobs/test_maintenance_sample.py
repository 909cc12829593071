"""What is hashed after a rewrite is bounded, and told."""

from __future__ import annotations

from spark_jobs.maintenance.plan import Verify
from spark_jobs.maintenance.sample import GIB, choose, why_not

SCHEMA = [
    {"name": "id", "type": "long"},
    {"name": "day", "type": "date"},
    {"name": "note", "type": "string"},
    {"name": "tags", "type": {"type": "list", "element": "string"}},
]
LIMITS = Verify(partitions=2, max_bytes=2 * GIB)


def test_whole_partitions_are_hashed_while_they_fit() -> None:
    found = choose({"a": GIB, "b": GIB, "c": GIB}, SCHEMA, LIMITS, "seed")
    assert (len(found.partitions), found.columns) == (2, None)
    assert found.name == "content_hash of 2 of 3 partitions"


def test_of_a_partition_that_is_too_large_some_columns_are_hashed() -> None:
    found = choose({"a": 9 * GIB, "b": 4 * GIB}, SCHEMA, LIMITS, "seed")
    assert found.partitions == ("b",)
    assert found.columns
    assert set(found.columns) < {"id", "day", "note", "tags"}
    assert found.name.endswith("of 4 columns in 1 of 2 partitions")
    assert found == choose({"b": 4 * GIB, "a": 9 * GIB}, SCHEMA, LIMITS, "seed")


def test_where_nothing_can_be_read_the_report_says_so() -> None:
    sizes = {"": 900 * GIB}
    found = choose(sizes, SCHEMA, LIMITS, "seed")
    assert (found.partitions, found.name) == ((), "content_hash: not hashed")
    assert why_not(sizes, LIMITS) == (
        "not hashed: the smallest of 1 partitions is 900.0 GiB to read, 2.0 GiB may be"
    )
