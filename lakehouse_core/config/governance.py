"""Who may do what: roles, what they may send, and what they see of tables."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from lakehouse_core.config.section import Section
from lakehouse_core.config.types import Count, Name, Text
from lakehouse_core.config.units import ByteSize


class TableRuleConfig(Section):
    """What a role sees of some tables.

    Attributes:
        table: `lake.demo.customers`; `*` stands for any characters.
        columns: the only columns it sees; None: all of them.
        deny: columns it does not see.
        masks: column → what it sees instead: `null`, `redacted`, `hash`, or an expression.
        row_filter: condition on the rows it sees; `:user` and `:role` stand for who asks.
        require_filter: one of these columns must be restricted wherever the table is read.
    """

    table: Text
    columns: tuple[Text, ...] | None = None
    deny: tuple[Text, ...] = ()
    masks: dict[Text, Text] = Field(default_factory=dict)
    row_filter: Text | None = None
    require_filter: tuple[Text, ...] = ()


class RoleConfig(Section):
    """One role.

    Attributes:
        users: who has it.
        groups: groups whose members have it.
        statements: read: queries; write: INSERT, UPDATE, DELETE, MERGE; define: CREATE, DROP.
        tables: tables it may use, as patterns.
        denied_tables: tables it may not use, whatever `tables` says.
        rules: what it sees of single tables; all that match are added up.
        max_rows: results are cut to so many rows.
        max_bytes: what one statement may read, by the estimate made before it runs.
        functions: functions it may use besides those known to be harmless, e.g. UDFs.
        forbidden_functions: functions it may not use though they are harmless.
        chooses_engine: it may name the engine that runs its statement.
    """

    users: tuple[Text, ...] = ()
    groups: tuple[Text, ...] = ()
    statements: tuple[Literal["read", "write", "define"], ...] = ("read",)
    tables: tuple[Text, ...] = ("*",)
    denied_tables: tuple[Text, ...] = ()
    rules: tuple[TableRuleConfig, ...] = ()
    max_rows: Count | None = None
    max_bytes: ByteSize | None = None
    functions: tuple[Text, ...] = ()
    forbidden_functions: tuple[Text, ...] = ()
    chooses_engine: bool = False


def _usual_roles() -> dict[str, RoleConfig]:
    return {
        "analyst": RoleConfig(chooses_engine=True),
        "engineer": RoleConfig(statements=("read", "write", "define"), chooses_engine=True),
    }


class GovernanceConfig(Section):
    """Roles, and the role of everybody else.

    Attributes:
        dialect: in which masks and row filters are written.
        default_role: of users that no role names; None: they may do nothing.
        roles: by name; a user has the first one that names them or one of their groups.
    """

    dialect: Text = "trino"
    default_role: Name | None = "analyst"
    roles: dict[Name, RoleConfig] = Field(default_factory=_usual_roles)
