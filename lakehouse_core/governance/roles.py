"""From the configuration to policies, and from a user to a role."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse_core.domain.errors import ConfigError
from lakehouse_core.sql.dialect import UnknownDialectError, dialect_named
from lakehouse_core.sql.guard.masks import expression_problem
from lakehouse_core.sql.guard.records import Policy, TableRule

if TYPE_CHECKING:
    from lakehouse_core.config.governance import GovernanceConfig, RoleConfig, TableRuleConfig


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks, as far as the front end authenticated them; `role` is one they proved to have."""

    user: str | None
    groups: tuple[str, ...] = ()
    role: str | None = None


def role_of(
    identity: Identity, governance: GovernanceConfig, wanted: str | None = None
) -> str | None:
    """The role of a user; None: they have none and may do nothing.

    Args:
        identity: who asks.
        governance: the configuration.
        wanted: the role they ask for; given only to those who have it.
    """
    held = [] if identity.role is None else [identity.role]
    held.extend(name for name, role in governance.roles.items() if _has(identity, role))
    if governance.default_role is not None:
        held.append(governance.default_role)
    if wanted is not None:
        return wanted if wanted in held else None
    return held[0] if held else None


def _has(identity: Identity, role: RoleConfig) -> bool:
    is_named = identity.user is not None and identity.user in role.users
    return is_named or not set(identity.groups).isdisjoint(role.groups)


def policies_of(governance: GovernanceConfig) -> dict[str, Policy]:
    """The policy of each role.

    Raises:
        ConfigError: a mask or row filter cannot be read, or the default role does not exist.
    """
    default = governance.default_role
    if default is not None and default not in governance.roles:
        raise ConfigError(
            f"governance.default_role: there is no role {default}; name one of "
            f"{', '.join(governance.roles) or 'governance.roles'}, or none"
        )
    try:
        dialect_named(governance.dialect)
    except UnknownDialectError as error:
        raise ConfigError(f"governance.dialect: {error}") from error
    return {
        name: _policy(name, role, governance.dialect) for name, role in governance.roles.items()
    }


def _policy(name: str, role: RoleConfig, dialect: str) -> Policy:
    rules = tuple(
        _rule(rule, dialect, f"governance.roles.{name}.rules[{number}]")
        for number, rule in enumerate(role.rules)
    )
    return Policy(
        role=name,
        statements=frozenset(role.statements),
        tables=tuple(pattern.lower() for pattern in role.tables),
        denied_tables=tuple(pattern.lower() for pattern in role.denied_tables),
        rules=rules,
        max_rows=role.max_rows,
        max_bytes=role.max_bytes,
        functions=frozenset(function.lower() for function in role.functions),
        forbidden_functions=frozenset(function.lower() for function in role.forbidden_functions),
        dialect=dialect,
        chooses_engine=role.chooses_engine,
    )


def _rule(rule: TableRuleConfig, dialect: str, path: str) -> TableRule:
    expressions = {f"{path}.masks.{column}": mask for column, mask in rule.masks.items()}
    if rule.row_filter is not None:
        expressions[f"{path}.row_filter"] = rule.row_filter
    for key, text in expressions.items():
        problem = expression_problem(text, dialect)
        if problem is not None:
            raise ConfigError(f"{key}: {problem}")
    return TableRule(
        table=rule.table.lower(),
        columns=None if rule.columns is None else _lowered(rule.columns),
        denied=_lowered(rule.deny),
        masks={column.lower(): mask for column, mask in rule.masks.items()},
        row_filter=rule.row_filter,
        required_filter=tuple(column.lower() for column in rule.require_filter),
    )


def _lowered(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(name.lower() for name in names)
