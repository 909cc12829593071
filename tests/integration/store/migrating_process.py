"""A process that migrates a store slowly, so that it can be killed in the middle.

python -m tests.integration.store.migrating_process FILE
"""

from __future__ import annotations

import sys

from lakehouse_core import duck
from lakehouse_core.store.migrate import Migration, migrate

ROWS = 400_000
STEPS = (
    Migration(1, "0001_first", "CREATE TABLE a (i BIGINT); INSERT INTO a FROM range(10)"),
    Migration(
        2,
        "0002_second",
        f"""
        CREATE TABLE b (i BIGINT, t VARCHAR);
        INSERT INTO b SELECT range, md5(range::VARCHAR) FROM range({ROWS});
        DROP TABLE a;
        CREATE TABLE a (i BIGINT, j BIGINT);
        INSERT INTO a SELECT i, i FROM b;
        DROP TABLE b;
        """,  # noqa: S608 a number from above
    ),
)


def main() -> None:
    """Tell when it starts and when it is done."""
    with duck.connect(sys.argv[1]) as connection:
        migrate(connection, STEPS[:1])
        sys.stdout.write("first\n")
        sys.stdout.flush()
        migrate(connection, STEPS)


if __name__ == "__main__":
    main()
