"""The guard of a process: one gate per role, made anew when roles or tables change.

    guard = Guard(policies_of(config.governance))
    guard.check(sql, "trino", "analyst", user="ana").allowed

It fails closed: an unknown role, dialect, statement, function or table is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.governance.roles import policies_of
from lakehouse_core.sql.guard import Asker, Gate, Known, Policy, Rule, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakehouse_core.config import Config
    from lakehouse_core.sql.guard import Relation


class Guard:
    """Decides for every role; safe to use from many threads, also while it is reloaded."""

    def __init__(
        self,
        policies: Mapping[str, Policy],
        relations: Mapping[str, Relation] | None = None,
        known: Known | None = None,
    ) -> None:
        """Make a guard.

        Args:
            policies: by role.
            relations: tables and views by full name in lower case; None: no catalog is at hand, and
                any plain name may be a table.
            known: how much of the lake that is; None: all of it.
        """
        self._known = known or Known()
        self._policies = dict(policies)
        self._relations = relations
        self._gates = _gates(self._policies, relations, self._known)

    def reload(
        self,
        *,
        policies: Mapping[str, Policy] | None = None,
        relations: Mapping[str, Relation] | None = None,
    ) -> None:
        """Take other policies or another catalog; nothing that was decided before is kept."""
        self._policies = self._policies if policies is None else dict(policies)
        self._relations = self._relations if relations is None else relations
        self._gates = _gates(self._policies, self._relations, self._known)

    @property
    def needs_relations(self) -> bool:
        """Whether a role sees less than there is, so that tables and columns must be known."""
        return any(policy.hides_anything for policy in self._policies.values())

    def sight(self, role: str | None) -> Policy:
        """What a role may know of; one that does not exist knows of nothing."""
        policy = self._policies.get(role) if role is not None else None
        return policy or Policy(role=role or "", tables=())

    def limits_bytes(self, role: str | None) -> bool:
        """Whether a role may read only so much, so that an estimate is needed."""
        policy = self._policies.get(role) if role is not None else None
        return policy is not None and policy.max_bytes is not None

    def check(
        self,
        sql: str,
        dialect: str,
        role: str | None,
        *,
        asker: Asker | None = None,
        estimated_bytes: int | None = None,
    ) -> Verdict:
        """Whether a text may run for a role, and how; never raises on account of the text.

        Args:
            sql: the text as the engine would get it.
            dialect: the engine's.
            role: of who asks; None: they have none.
            asker: user and session.
            estimated_bytes: what it would read; needed when the role has a limit.
        """
        gate = self._gates.get(role) if role is not None else None
        if gate is None:
            reason = f"there is no role {role}" if role else "the user has no role"
            return Verdict(
                False,
                sql,
                Rule.UNKNOWN_ROLE,
                f"{reason}; see governance.roles in the configuration",
            )
        return gate.check(sql, dialect, asker or Asker(), estimated_bytes=estimated_bytes)


def make_guard(config: Config) -> Guard:
    """The guard of a process, before anybody has read the catalogs.

    Until then roles that do not see everything see nothing.

    Raises:
        ConfigError: a role is configured wrongly.
    """
    catalogs = frozenset(name.lower() for name in config.catalogs)
    # A table may be younger than what was read last; a catalog may not.
    return Guard(policies_of(config.governance), {}, Known(is_complete=False, catalogs=catalogs))


def _gates(
    policies: Mapping[str, Policy], relations: Mapping[str, Relation] | None, known: Known
) -> dict[str, Gate]:
    return {role: Gate(policy, relations, known=known) for role, policy in policies.items()}
