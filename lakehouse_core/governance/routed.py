"""What the router asks: a text in an engine's dialect, and whether it may run there.

    Ports(fleet=…, translator=RoutedTranslator(), guard=RoutedGuard(guard, config.governance))

The guard sees the text as the engine would get it, after translation, whatever front end it came
through. What was translated is looked at as its author wrote it, too: a translation leaves out what
it has no words for (locks, odd characters, comments that lexers read differently), and the guard
would never see it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.governance.roles import Identity, role_of
from lakehouse_core.routing.request import Translation, Verdict
from lakehouse_core.sql.guard import Asker, Rule
from lakehouse_core.sql.translate import Outcome, Setting, Translator

if TYPE_CHECKING:
    from lakehouse_core.config.governance import GovernanceConfig
    from lakehouse_core.governance.guard import Guard
    from lakehouse_core.routing.request import (
        Request,
        ScanEstimator,
        Sight,
        StatementFacts,
        TranslationOutcome,
    )

_OUTCOMES: dict[Outcome, TranslationOutcome] = {
    Outcome.IDENTICAL: "not_needed",
    Outcome.TRANSLATED: "translated",
    Outcome.DOUBTFUL: "doubtful",
    Outcome.FAILED: "fallback",
}


# What makes a text hostile wherever it is read; names and functions count where they are used.
_AS_WRITTEN = frozenset({Rule.TEXT, Rule.SYNTAX})


class RoutedTranslator:
    """The router's `Translator`."""

    def __init__(self, setting: Setting | None = None) -> None:
        self._translator = Translator(setting or Setting(mode="best_effort"))

    def translate(
        self,
        sql: str,
        source: str,
        target: str,
        *,
        catalog: str | None = None,
        schema: str | None = None,
    ) -> Translation:
        """See `routing.request.Translator`."""
        found = self._translator.translate(sql, source, target, catalog=catalog, schema=schema)
        return Translation(found.sql, _OUTCOMES[found.outcome], found.reason)


class RoutedGuard:
    """The router's `Guard`: finds the role of who asks and lets the role's gate decide."""

    def __init__(
        self,
        guard: Guard,
        governance: GovernanceConfig,
        estimator: ScanEstimator | None = None,
    ) -> None:
        self._guard = guard
        self._governance = governance
        self._estimator = estimator

    def sight(self, request: Request) -> Sight:
        """See `routing.request.Guard`."""
        return self._guard.sight(self._role(request))

    def check(self, sql: str, dialect: str, request: Request, facts: StatementFacts) -> Verdict:
        """See `routing.request.Guard`."""
        role = self._role(request)
        estimate = None
        # An estimate costs more than everything else here: only where a limit asks for it.
        if self._estimator is not None and self._guard.limits_bytes(role):
            estimate = self._estimator.estimate(request, facts)
        asker = Asker(
            request.user,
            request.catalog,
            tuple(request.schema.split(".")) if request.schema else (),
        )
        if dialect != request.dialect and sql != request.sql:
            written = self._guard.check(request.sql, request.dialect, role, asker=asker)
            if not written.allowed and written.rule in _AS_WRITTEN:
                return Verdict(False, request.sql, written.rule, written.reason)
        size = None if estimate is None else estimate.bytes
        found = self._guard.check(sql, dialect, role, asker=asker, estimated_bytes=size)
        reason = found.reason
        if found.rule == Rule.BYTE_LIMIT and estimate is not None and size is None:
            reason = f"{reason} ({estimate.basis})"
        return Verdict(found.allowed, found.sql, found.rule, reason)

    def _role(self, request: Request) -> str | None:
        identity = Identity(request.user, request.groups, request.proven_role)
        return role_of(identity, self._governance, request.role)
