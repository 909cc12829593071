"""The ACCOUNT_USAGE views we read, and the two statements each is read with.

Rows come hours late and in no order. So each pull first asks for a fingerprint of every hour (how
many rows, and what they add up to), and reads only the hours whose fingerprint has changed: a
three-day overlap costs one aggregate, not three days of SQL texts each time.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import Template

_EPOCH = "'1971-01-01'::TIMESTAMP_LTZ"  # a query that runs has the end of 1970, or none

_FINGERPRINTS = Template(
    "SELECT DATE_TRUNC('HOUR', $time) AS HOUR, COUNT(*) AS N, $sums FROM $view "
    "WHERE $time >= ? GROUP BY 1 ORDER BY 1"
)
_ROWS = Template("SELECT $columns FROM $view WHERE $time >= ? AND $time < ? ORDER BY $time, $tie")


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageView:
    """One view.

    Attributes:
        time: SQL of the time that a row is filed under.
        sums: SQL of figures that change when a row of an hour does.
        columns: what is read of it.
        tie: column that orders rows of one moment.
        is_whole: an hour's rows add up and must not come in pieces; there are few.
        is_essential: whether the source is broken without it.
    """

    name: str
    time: str
    sums: str
    columns: tuple[str, ...]
    tie: str
    is_whole: bool = False
    is_essential: bool = False

    def fingerprints(self, database: str, schema: str) -> str:
        """One row per hour since a time."""
        return _FINGERPRINTS.substitute(
            time=self.time, sums=self.sums, view=self._path(database, schema)
        )

    def rows(self, database: str, schema: str) -> str:
        """The rows from a time up to another, in order; `FILED_AT` is what orders them."""
        return _ROWS.substitute(
            columns=", ".join((*self.columns, f"{self.time} AS FILED_AT")),
            view=self._path(database, schema),
            time=self.time,
            tie=self.tie,
        )

    def _path(self, database: str, schema: str) -> str:
        return ".".join(_identifier(part) for part in (database, schema, self.name))


def _identifier(name: str) -> str:
    quoted = name.replace('"', '""')
    return f'"{quoted}"'


# Filed under its end: a query that ran for a week is new when it ends.
QUERIES = UsageView(
    name="QUERY_HISTORY",
    time=f"CASE WHEN END_TIME > {_EPOCH} THEN END_TIME ELSE START_TIME END",
    sums="SUM(CASE WHEN UPPER(EXECUTION_STATUS) IN ('SUCCESS', 'FAIL', 'INCIDENT') THEN 1 ELSE 0 "
    "END) AS S1, SUM(TOTAL_ELAPSED_TIME) AS S2, SUM(BYTES_SCANNED) AS S3",
    columns=(
        "QUERY_ID",
        "QUERY_TEXT",
        "DATABASE_NAME",
        "SCHEMA_NAME",
        "QUERY_TYPE",
        "USER_NAME",
        "ROLE_NAME",
        "WAREHOUSE_NAME",
        "WAREHOUSE_SIZE",
        "QUERY_TAG",
        "EXECUTION_STATUS",
        "ERROR_CODE",
        "ERROR_MESSAGE",
        "START_TIME",
        "END_TIME",
        "TOTAL_ELAPSED_TIME",
        "COMPILATION_TIME",
        "EXECUTION_TIME",
        "QUEUED_PROVISIONING_TIME",
        "QUEUED_REPAIR_TIME",
        "QUEUED_OVERLOAD_TIME",
        "BYTES_SCANNED",
        "PERCENTAGE_SCANNED_FROM_CACHE",
        "BYTES_WRITTEN",
        "ROWS_PRODUCED",
        "ROWS_INSERTED",
        "ROWS_UPDATED",
        "ROWS_DELETED",
        "PARTITIONS_SCANNED",
        "PARTITIONS_TOTAL",
        "BYTES_SPILLED_TO_LOCAL_STORAGE",
        "BYTES_SPILLED_TO_REMOTE_STORAGE",
        "CREDITS_USED_CLOUD_SERVICES",
        "QUERY_PARAMETERIZED_HASH",
    ),
    tie="QUERY_ID",
    is_essential=True,
)
METERING = UsageView(
    name="WAREHOUSE_METERING_HISTORY",
    time="START_TIME",
    sums="SUM(CREDITS_USED) AS S1, SUM(CREDITS_ATTRIBUTED_COMPUTE_QUERIES) AS S2",
    columns=(
        "START_TIME",
        "WAREHOUSE_ID",
        "WAREHOUSE_NAME",
        "CREDITS_USED_COMPUTE",
        "CREDITS_USED_CLOUD_SERVICES",
        "CREDITS_ATTRIBUTED_COMPUTE_QUERIES",
    ),
    tie="WAREHOUSE_NAME",
    is_whole=True,
)
ATTRIBUTION = UsageView(
    name="QUERY_ATTRIBUTION_HISTORY",
    time="START_TIME",
    sums="SUM(CREDITS_ATTRIBUTED_COMPUTE) AS S1",
    columns=(
        "QUERY_ID",
        "PARENT_QUERY_ID",
        "ROOT_QUERY_ID",
        "WAREHOUSE_NAME",
        "START_TIME",
        "END_TIME",
        "CREDITS_ATTRIBUTED_COMPUTE",
        "CREDITS_USED_QUERY_ACCELERATION",
    ),
    tie="QUERY_ID",
)
ACCESS = UsageView(
    name="ACCESS_HISTORY",
    time="QUERY_START_TIME",
    sums="COUNT(DISTINCT QUERY_ID) AS S1",
    columns=("QUERY_ID", "QUERY_START_TIME", "BASE_OBJECTS_ACCESSED", "OBJECTS_MODIFIED"),
    tie="QUERY_ID",
)
