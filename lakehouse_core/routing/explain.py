"""What would happen to a statement: the very decision, with what surrounds it; nothing is run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from lakehouse_core.domain.errors import LakehouseError, Terminal
from lakehouse_core.routing.feasibility import state_obstacle
from lakehouse_core.routing.request import Request, ScanEstimate

if TYPE_CHECKING:
    from decimal import Decimal

    from lakehouse_core.routing.groups import Group, Member
    from lakehouse_core.routing.request import CapacityFacts, Denial, ScanEstimator, Step
    from lakehouse_core.routing.router import Router

_TEXTS = ("sql", "dialect", "protocol", "user", "role", "source", "catalog", "schema", "endpoint")
_LISTS = ("groups", "tags")
_MAPS = ("headers", "session")


class BadQuestionError(Terminal, LakehouseError):
    """Raised when what is to be explained is not a statement with its circumstances."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberView:
    """A member of the chosen group: how it stands, and why it cannot take statements now."""

    member: str
    engine_id: str
    engine_type: str
    configured: str
    observed: str
    circuit: str
    running: int
    limit: int | None
    obstacle: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What would happen to a statement.

    Attributes:
        would_run: False when it would be denied.
        translated_sql: the text as the engine would get it.
        members: of the group it would go to.
    """

    would_run: bool
    denial: Denial | None
    group: str | None
    member: str | None
    engine_id: str | None
    strategy: str | None
    source_dialect: str
    target_dialect: str | None
    sql: str
    translated_sql: str
    translation: str
    translation_reason: str
    statement_kind: str
    tables: tuple[str, ...]
    template_id: str
    parse_error: str | None
    priority: int
    trace: tuple[Step, ...]
    estimate: ScanEstimate
    capacity: CapacityFacts
    members: tuple[MemberView, ...]


def explain(
    router: Router,
    request: Request,
    estimator: ScanEstimator | None = None,
    per_terabyte_usd: Mapping[str, Decimal] | None = None,
) -> Explanation:
    """Decide as for a real statement, and say what it would read and cost.

    Args:
        router: decides; nothing of it changes.
        request: the statement.
        estimator: says what it would read.
        per_terabyte_usd: engines that bill by bytes, and what they ask.
    """
    decision = router.decider.decide(request, is_counted=False)
    group = router.plan.layout.groups.get(decision.group or "")
    estimate = ScanEstimate(basis="nobody estimates scans here")
    if decision.estimate is not None:
        estimate = decision.estimate
    elif estimator is not None:
        estimate = estimator.estimate(request, decision.facts)
    estimate = estimate.priced((per_terabyte_usd or {}).get(decision.engine_id or ""))
    return Explanation(
        would_run=decision.denial is None,
        denial=decision.denial,
        group=decision.group,
        member=decision.member,
        engine_id=decision.engine_id,
        strategy=None if group is None else group.strategy_name,
        source_dialect=decision.source_dialect,
        target_dialect=decision.target_dialect,
        sql=request.sql,
        translated_sql=decision.sql,
        translation=decision.translation,
        translation_reason=decision.translation_reason,
        statement_kind=decision.facts.kind,
        tables=decision.facts.tables,
        template_id=decision.facts.template_id,
        parse_error=decision.facts.error,
        priority=decision.priority,
        trace=decision.trace,
        estimate=estimate,
        capacity=decision.capacity,
        members=() if group is None else members_of(router, group),
    )


def members_of(router: Router, group: Group) -> tuple[MemberView, ...]:
    """How the members of a group stand."""
    return tuple(_view(router, group, member) for member in group.members)


def request_from(document: object) -> Request:
    """The statement and its circumstances, as `POST /v1/route/explain` gets them.

    Raises:
        BadQuestionError: says which key is wrong.
    """
    if not isinstance(document, Mapping):
        raise BadQuestionError('Expected a JSON object, e.g. {"sql": "SELECT 1"}')
    known = (*_TEXTS, *_LISTS, *_MAPS)
    unknown = sorted(str(key) for key in document if key not in known)
    if unknown:
        raise BadQuestionError(f"Unknown: {', '.join(unknown)}; known are {', '.join(known)}")
    given: dict[str, Any] = {}
    for key, value in document.items():
        if value is not None:
            given[str(key)] = _checked(str(key), value)
    if not str(given.get("sql", "")).strip():
        raise BadQuestionError("sql is missing: the statement to explain")
    given.setdefault("dialect", "trino")
    # It is asked what would happen to somebody of that role; nothing is run.
    given["proven_role"] = given.get("role")
    if "headers" in given:
        given["headers"] = {name.lower(): text for name, text in given["headers"].items()}
    return Request(**given)


def to_document(explanation: Explanation) -> dict[str, Any]:
    """An explanation as JSON has it; money stays exact, as text.

    `to_document(explain(router, request_from(body)))` answers `POST /v1/route/explain`.
    """
    document = asdict(explanation)
    cost = explanation.estimate.cost_usd
    document["estimate"]["cost_usd"] = None if cost is None else str(cost)
    return document


def _checked(key: str, value: object) -> object:
    if key in _TEXTS and isinstance(value, str):
        return value
    if key in _LISTS and isinstance(value, list) and all(isinstance(v, str) for v in value):
        return tuple(value)
    if key in _MAPS and isinstance(value, Mapping) and _is_of_texts(value):
        return dict(value)
    wanted = "text" if key in _TEXTS else "a list of texts" if key in _LISTS else "texts by name"
    raise BadQuestionError(f"{key}: expected {wanted}")


def _is_of_texts(value: Mapping[Any, Any]) -> bool:
    return all(isinstance(part, str) for pair in value.items() for part in pair)


def _view(router: Router, group: Group, member: Member) -> MemberView:
    decider = router.decider
    standing = decider.ports.fleet.standing(member.engine_id)
    breaker = decider.breaker(member, group)
    return MemberView(
        member=member.name,
        engine_id=member.engine_id,
        engine_type=member.engine_type,
        configured=standing.configured,
        observed=standing.observed,
        circuit=breaker.circuit.state,
        running=decider.capacity.load(member.engine_id),
        limit=group.limits[member.name],
        obstacle=state_obstacle(member, standing) or breaker.obstacle(),
    )
