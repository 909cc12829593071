"""Which names may be read at all: no files, no system tables, nothing the catalog does not know."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse_core.sql.cache import Cache
from lakehouse_core.sql.guard.records import RefusedError, Rule
from lakehouse_core.sql.listing import words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakehouse_core.sql.guard.records import Access, Policy, Relation

# `parquet.`path`` is a file to Spark; the first part is the format.
_FORMATS = words("""
    avro binaryfile csv delta hudi iceberg image jdbc json kafka libsvm orc parquet rate socket
    statestore text xml
""")
_SPARK = frozenset({"spark", "spark2", "databricks", "hive"})
_PATH = re.compile(
    r"[/\\:*?{}\[\]%]"
    r"|\.(?:csv|tsv|parquet|json|ndjson|jsonl|txt|orc|avro|db|duckdb|gz|zst|xlsx)\Z"
)
_SYSTEM_CATALOGS = frozenset({"system", "jmx", "snowflake", "temp", "pg_catalog"})
_SYSTEM_SCHEMAS = words("""
    account_usage performance_schema pg_catalog pg_toast sys
""")
_SYSTEM_PREFIXES = (
    "pg_",
    "sqlite_",
    "duckdb_",
    "pragma_",
    "stl_",
    "stv_",
    "svl_",
    "svv_",
    "system$",
)
_SCHEMA_TABLES = frozenset({"tables", "columns", "schemata"})
# Iceberg's tables about a table, and its data at another time: they show what masks hide.
_SHADOWS = words("""
    all_data_files all_delete_files all_entries all_files all_manifests changes data_files
    delete_files entries files history manifests metadata_log_entries partitions
    position_deletes refs snapshots
""")
_SHADOW_PREFIXES = ("branch_", "tag_", "snapshot_id_", "at_timestamp_")


def is_information_schema(parts: tuple[str, ...]) -> bool:
    """Whether a name is one of the harmless views of a catalog's own schema.

    Raises:
        RefusedError: it is another one of that schema.
    """
    if len(parts) < 2 or parts[-2] != "information_schema":
        return False
    if parts[-1] in _SCHEMA_TABLES and parts[0] not in _SYSTEM_CATALOGS:
        return True
    raise RefusedError(Rule.SYSTEM_TABLE, f"{_shown(parts)} is a system table")


def refuse_name(parts: tuple[str, ...], dialect: str) -> None:
    """Look at the name alone.

    Raises:
        RefusedError: it names a file or a system table.
    """
    if any(_PATH.search(part) for part in parts) or not all(parts):
        raise RefusedError(Rule.FILE, f"{_shown(parts)} is a file, not a table of the catalog")
    if dialect in _SPARK and len(parts) > 1 and parts[0] in _FORMATS:
        raise RefusedError(
            Rule.FILE, f"{_shown(parts)} reads files of the format {parts[0]} past the catalog"
        )
    in_system = (
        (len(parts) > 1 and parts[0] in _SYSTEM_CATALOGS)
        or (len(parts) > 1 and parts[-2] in _SYSTEM_SCHEMAS)
        or (len(parts) <= 2 and parts[-1].startswith(_SYSTEM_PREFIXES))
    )
    if in_system:
        raise RefusedError(Rule.SYSTEM_TABLE, f"{_shown(parts)} is a system table")


@dataclass(frozen=True, slots=True)
class Known:
    """How much of the lake is known.

    Attributes:
        is_complete: a table that is not among the relations does not exist.
        catalogs: the only ones there are, in lower case; None: nobody said.
    """

    is_complete: bool = True
    catalogs: frozenset[str] | None = None


class Tables:
    """What a policy and a catalog say about names; each name is looked up once."""

    def __init__(
        self, policy: Policy, relations: Mapping[str, Relation] | None, known: Known
    ) -> None:
        self._policy = policy
        self._relations = relations or {}
        # A name nobody knows may be a view on what the role does not see.
        is_closed = known.is_complete or (known.catalogs is not None and policy.hides_anything)
        self._is_complete = is_closed and relations is not None
        self._catalogs = known.catalogs
        self._known: dict[tuple[object, ...], Access] = {}
        self.subqueries: Cache[tuple[object, ...], str] = Cache(2_000)

    def relation(self, parts: tuple[str, ...]) -> Relation | None:
        """What the catalog knows of a table."""
        return self._relations.get(".".join(parts))

    def refuse_ungranted(self, parts: tuple[str, ...]) -> None:
        """Look at catalog and grants of a table or schema.

        Raises:
            RefusedError: it is in another catalog, or not granted.
        """
        if self._catalogs is not None and len(parts) > 2 and parts[0] not in self._catalogs:
            raise RefusedError(
                Rule.UNKNOWN_TABLE,
                f"there is no catalog {parts[0]}; there is {', '.join(sorted(self._catalogs))}",
            )
        if not self._policy.grants(parts):
            raise RefusedError(
                Rule.TABLE_GRANT, f"the role {self._policy.role} may not use {_shown(parts)}"
            )

    def access(self, parts: tuple[str, ...], written: tuple[str, ...], dialect: str) -> Access:
        """What the role sees of a table.

        Args:
            parts: its completed name.
            written: its name as the statement has it: engines look there for files.
            dialect: of the statement.

        Raises:
            RefusedError: it may not be read.
        """
        key = (dialect, written, parts)
        known = self._known.get(key)
        if known is not None:
            return known
        if self.relation(parts) is None:
            refuse_name(written, dialect)
            refuse_name(parts, dialect)
        base = _base(parts)
        if self._is_complete and self.relation(base) is None:
            raise RefusedError(
                Rule.UNKNOWN_TABLE,
                f"{_shown(parts)} is not a table of the catalog; write catalog.schema.table",
            )
        self.refuse_ungranted(base)
        access = self._policy.access(base)
        if base != parts and access.hides:
            raise RefusedError(
                Rule.MASK,
                f"{_shown(parts)} shows what the role {self._policy.role} does not see of "
                f"{_shown(base)}",
            )
        if len(self._known) < 10_000:
            self._known[key] = access
        return access


def _base(parts: tuple[str, ...]) -> tuple[str, ...]:
    """The table a table about it belongs to: `t$files`, `t.files`, `t.branch_x`."""
    *before, last = parts
    for mark in ("$", "@"):
        name, found, _ = last.partition(mark)
        if found and name:
            return (*before, name)
    if len(parts) > 3 and (last in _SHADOWS or last.startswith(_SHADOW_PREFIXES)):
        return tuple(before)
    return parts


def _shown(parts: tuple[str, ...]) -> str:
    return ".".join(parts)[:200]
