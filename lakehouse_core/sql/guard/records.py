"""What a guard is told and what it answers: policies of roles, relations, verdicts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

StatementClass = Literal["read", "write", "define"]
READ_ONLY: frozenset[StatementClass] = frozenset({"read"})


class Rule(StrEnum):
    """The guard that refused a statement."""

    UNKNOWN_ROLE = "unknown_role"
    UNKNOWN_DIALECT = "unknown_dialect"
    TEXT = "text"
    NOT_UNDERSTOOD = "not_understood"
    ONE_STATEMENT = "one_statement"
    STATEMENT = "statement"
    READ_ONLY = "read_only"
    SYNTAX = "syntax"
    FUNCTION = "function"
    TABLE_FUNCTION = "table_function"
    FILE = "file"
    SYSTEM_TABLE = "system_table"
    UNKNOWN_TABLE = "unknown_table"
    TABLE_GRANT = "table_grant"
    COLUMN_GRANT = "column_grant"
    MASK = "mask"
    REQUIRED_FILTER = "required_filter"
    BYTE_LIMIT = "byte_limit"


class RefusedError(Exception):
    """Raised inside the guard; it leaves the guard as a `Verdict`."""

    def __init__(self, rule: Rule, reason: str) -> None:
        super().__init__(reason)
        self.rule = rule
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a text may run for a role.

    Attributes:
        allowed: False: nothing may be sent to any engine.
        sql: the text to run, after masks, row filters and limits; as given when refused.
        rule: the guard that refused.
        reason: what the client reads.
    """

    allowed: bool
    sql: str
    rule: str | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Relation:
    """A table or view the catalog knows.

    Attributes:
        columns: in their order.
        view_sql: the text of a view; None for a table.
        view_dialect: the dialect of that text.
    """

    columns: tuple[str, ...]
    view_sql: str | None = None
    view_dialect: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRule:
    """What a role sees of the tables that a pattern names.

    Attributes:
        table: `lake.demo.customers`; `*` stands for any characters.
        columns: the only columns it sees; None: all.
        denied: columns it does not see.
        masks: column → expression it sees instead, in the policy's dialect.
        row_filter: condition on the rows it sees, in the policy's dialect; `:user` and `:role`
            stand for who asks.
        required_filter: one of these columns must be restricted wherever the table is read.
    """

    table: str
    columns: frozenset[str] | None = None
    denied: frozenset[str] = frozenset()
    masks: Mapping[str, str] = field(default_factory=dict)
    row_filter: str | None = None
    required_filter: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Access:
    """What a role sees of one table: the sum of the rules that name it."""

    columns: frozenset[str] | None = None
    denied: frozenset[str] = frozenset()
    masks: Mapping[str, str] = field(default_factory=dict)
    row_filters: tuple[str, ...] = ()
    required_filter: tuple[tuple[str, ...], ...] = ()

    @property
    def hides_columns(self) -> bool:
        """Whether the role sees other columns than there are."""
        return self.columns is not None or bool(self.denied or self.masks)

    @property
    def hides(self) -> bool:
        """Whether the role sees something else than the table holds."""
        return self.hides_columns or bool(self.row_filters)

    def sees(self, column: str) -> bool:
        """Whether the role sees a column, masked or not."""
        return column not in self.denied and (self.columns is None or column in self.columns)


NO_RULES = Access()


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a role may do.

    Attributes:
        role: its name, for messages.
        statements: read: queries; write: INSERT, UPDATE, DELETE, MERGE; define: CREATE, DROP.
        tables: patterns of the tables it may read (and write, when it writes).
        denied_tables: patterns of those it may not, whatever `tables` says.
        rules: what it sees of single tables; all that match are added up.
        max_rows: a result is cut to so many; None: not cut.
        max_bytes: a statement that would read more is refused; None: no limit.
        functions: functions allowed besides those the guard knows to be harmless.
        forbidden_functions: functions refused though harmless.
        dialect: of masks and row filters.
        chooses_engine: whether it may name the engine that runs its statement.
    """

    role: str
    statements: frozenset[StatementClass] = READ_ONLY
    tables: tuple[str, ...] = ("*",)
    denied_tables: tuple[str, ...] = ()
    rules: tuple[TableRule, ...] = ()
    max_rows: int | None = None
    max_bytes: int | None = None
    functions: frozenset[str] = frozenset()
    forbidden_functions: frozenset[str] = frozenset()
    dialect: str = "trino"
    chooses_engine: bool = False

    @property
    def hides_anything(self) -> bool:
        """Whether there is a table the role does not see as it is."""
        return bool(self.rules or self.denied_tables) or "*" not in self.tables

    def unrestricted(self) -> Policy:
        """The same policy with every function it names allowed and every kind of statement."""
        return replace(
            self,
            functions=self.functions | self.forbidden_functions,
            forbidden_functions=frozenset(),
            statements=frozenset(("read", "write", "define")),
        )

    def grants(self, parts: tuple[str, ...]) -> bool:
        """Whether the role may use a table at all; a name cut short is granted by `*` only."""
        if any(may_be(parts, pattern) for pattern in self.denied_tables):
            return False
        name = ".".join(parts)
        return any(fnmatchcase(name, pattern) for pattern in self.tables)

    def visible(self, parts: tuple[str, ...], columns: tuple[str, ...]) -> tuple[str, ...] | None:
        """The columns of a table whose names the role may know; None: not even the table's."""
        if not self.hides_anything:
            return columns
        if not self.grants(parts):
            return None
        access = self.access(parts)
        return tuple(column for column in columns if access.sees(column.lower()))

    def access(self, parts: tuple[str, ...]) -> Access:
        """What the role sees of a table; a rule counts as soon as the name may be meant."""
        found = [rule for rule in self.rules if may_be(parts, rule.table)]
        masks: dict[str, str] = {}
        allowed: frozenset[str] | None = None
        for rule in found:
            masks = {**rule.masks, **masks}  # the first rule wins
            if rule.columns is not None:
                allowed = rule.columns if allowed is None else allowed & rule.columns
        return Access(
            allowed,
            frozenset().union(*(rule.denied for rule in found)),
            masks,
            tuple(rule.row_filter for rule in found if rule.row_filter),
            tuple(rule.required_filter for rule in found if rule.required_filter),
        )


def may_be(parts: tuple[str, ...], pattern: str) -> bool:
    """Whether a name, perhaps without its catalog, may be one of a pattern's tables."""
    if fnmatchcase(".".join(parts), pattern):
        return True
    wanted = pattern.split(".")
    if len(parts) >= len(wanted):
        return False
    ends = zip(parts, wanted[-len(parts) :], strict=True)
    return all(fnmatchcase(part, end) for part, end in ends)
