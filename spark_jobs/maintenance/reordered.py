"""Iceberg's `rewriteDataFiles`, with its commit left to us.

The action plans, writes and commits in one call and leaves no moment to ask for the lease before it
commits; the table of a transaction, which would, cannot be scanned. So its own planner and its own
writer are called one by one, with the options it has checked itself, and what they wrote is
committed as our other rewrites are. The three members used here are not public in Iceberg 1.12,
whose version is pinned.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spark_jobs.maintenance.table import LakeTable

AT_A_TIME, AT_A_TIME_BY_DEFAULT = "max-concurrent-file-group-rewrites", "5"


@dataclass(frozen=True, slots=True)
class OpenGroup:
    """Iceberg's `RewriteFileGroup`."""

    java: Any


class OpenRewrite:
    """A rewrite of data files before its commit.

    Args:
        table: the table.
        action: Iceberg's, with strategy, filter and options.
        snapshot_id: what is planned on.
    """

    def __init__(self, table: LakeTable, action: Any, snapshot_id: int) -> None:
        self._spark = table.spark
        self._gateway: Any = table.spark.sparkContext._gateway
        self._jvm: Any = table.jvm
        self._action = action
        self._call("init", snapshot_id)
        planner = action.getClass().getDeclaredField("planner")
        planner.setAccessible(True)
        self._plan = planner.get(action).plan()

    def groups(self) -> list[OpenGroup]:
        """What is rewritten together, in Iceberg's order."""
        iterator, found = self._plan.groups().iterator(), []
        while iterator.hasNext():
            found.append(OpenGroup(iterator.next()))
        return found

    def write(self, groups: Sequence[OpenGroup], options: Mapping[str, str]) -> None:
        """Give each group its new files; after a failure no further group is begun."""
        at_a_time = int(options.get(AT_A_TIME, AT_A_TIME_BY_DEFAULT))
        with ThreadPoolExecutor(at_a_time, "rewrite", initializer=self._enter) as pool:
            running = [
                pool.submit(self._call, "rewriteFiles", self._plan, one.java) for one in groups
            ]
            try:
                for one in running:
                    one.result()
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    def _enter(self) -> None:
        """Make the session that of this thread: Iceberg finds its catalogs through it."""
        sessions = getattr(self._jvm, "org.apache.spark.sql.classic.SparkSession")
        sessions.setActiveSession(self._spark._jsparkSession)

    def _call(self, name: str, *given: Any) -> Any:
        methods = self._action.getClass().getDeclaredMethods()
        method = next(one for one in methods if one.getName() == name)
        method.setAccessible(True)
        arguments = self._gateway.new_array(self._jvm.java.lang.Object, len(given))
        for place, value in enumerate(given):
            arguments[place] = value
        return method.invoke(self._action, arguments)
