"""The decision: rules → group → feasible members → strategy → translation → guard.

One path for everybody: a statement that runs, one that waits, and one that is only explained. It
does no I/O and changes nothing but the rules' hit counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakehouse_core.routing.breaker import Breaker
from lakehouse_core.routing.capacity import Capacity
from lakehouse_core.routing.facts import Facts
from lakehouse_core.routing.feasibility import state_obstacle, statement_obstacle
from lakehouse_core.routing.groups import is_allowed
from lakehouse_core.routing.override import engine_asked_for, group_with
from lakehouse_core.routing.request import (
    Candidate,
    CapacityFacts,
    Decision,
    Denial,
    Step,
    Translation,
)
from lakehouse_core.routing.rules import Failure
from lakehouse_core.routing.strategies import Asked, Pick
from lakehouse_core.routing.tags import with_defaults

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from decimal import Decimal

    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.domain.query import EngineId
    from lakehouse_core.routing.groups import Endpoint, Group, Layout, Member
    from lakehouse_core.routing.queue import WaitingLine
    from lakehouse_core.routing.request import (
        DenialKind,
        Fleet,
        Guard,
        Predictor,
        Request,
        ScanEstimate,
        ScanEstimator,
        StatementFacts,
        Translator,
        Verdict,
    )
    from lakehouse_core.routing.rules import Rule
    from lakehouse_core.routing.trials import TrialBook

_NOT_NEEDED = "the engine speaks the client's dialect"
_NO_TRANSLATOR = Translation("", "fallback", "there is no translator")
_GOOD = ("not_needed", "translated")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything the configuration says about routing, made ready; replaced as a whole.

    Attributes:
        is_strict: a text that cannot be translated is refused.
        translates_all: scripts change texts for engines of the client's dialect, too.
        source: where it was read from.
    """

    rules: tuple[Rule, ...]
    layout: Layout
    is_strict: bool = False
    translates_all: bool = False
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """What the router decides with, beside the configuration.

    Attributes:
        estimator: says what a statement would read, where a strategy asks for it.
        per_terabyte_usd: what engines ask that bill by bytes.
    """

    fleet: Fleet
    translator: Translator | None = None
    guard: Guard | None = None
    predictor: Predictor | None = None
    estimator: ScanEstimator | None = None
    per_terabyte_usd: Mapping[str, Decimal] = field(default_factory=dict)
    facts: Facts = field(default_factory=Facts)
    trials: TrialBook | None = None


@dataclass(slots=True)
class _Case:
    """One decision under way."""

    request: Request
    facts: StatementFacts
    plan: Plan
    without: frozenset[EngineId]
    why_without: str
    trace: list[Step]
    endpoint: Endpoint | None = None
    only: str | None = None  # the one engine the client wants
    obstacles: list[str] = field(default_factory=list)
    doubtful: _Choice | None = None
    may_pass: bool = False  # something that stands in the way will not for ever

    def step(self, stage: str, subject: str, result: str, detail: str = "") -> None:
        self.trace.append(Step(stage, subject, result, detail))


@dataclass(frozen=True, slots=True)
class _Choice:
    """A member, and the text it would get."""

    group: Group
    member: Member
    translation: Translation
    would_queue: bool
    candidates: tuple[str, ...]


class Decider:
    """Decides; knows how full everything is, but takes no place."""

    def __init__(self, plan: Plan, ports: Ports, line: WaitingLine, clock: Clock) -> None:
        self.plan = plan
        self.ports = ports
        self.capacity = Capacity()
        self.line = line
        self._clock = clock
        self._breakers: dict[EngineId, Breaker] = {}

    def breaker_of(self, engine_id: EngineId) -> Breaker | None:
        """The breaker of an engine that was ever considered."""
        return self._breakers.get(engine_id)

    def breaker(self, member: Member, group: Group) -> Breaker:
        """The breaker of a member's engine; it outlives a reload."""
        found = self._breakers.get(member.engine_id)
        if found is None:
            found = self._breakers[member.engine_id] = Breaker(group.breaker, self._clock)
        return found

    def decide(
        self,
        request: Request,
        *,
        without: frozenset[EngineId] = frozenset(),
        why_without: str = "it has failed this statement",
        so_far: Sequence[Step] = (),
        is_counted: bool = True,
    ) -> Decision:
        """Where a statement goes and what is sent there, or why it is not run.

        Args:
            request: the statement.
            without: engines that are left out.
            why_without: why so.
            so_far: what the trace starts with.
            is_counted: whether the rule that decides counts this as a hit.
        """
        plan, facts = self.plan, self.ports.facts.of(request)
        case = _Case(request, facts, plan, without, why_without, list(so_far))
        group = self._group(case, is_counted=is_counted)
        if isinstance(group, Denial):
            return self._denied(case, group)
        group = self._overridden(case, group)
        if isinstance(group, Denial):
            return self._denied(case, group)
        choice = self._place(case, group)
        if isinstance(choice, Denial):
            return self._denied(case, choice, group)
        return self._granted(case, choice)

    # --- the group ----------------------------------------------------------------------------

    def _group(self, case: _Case, *, is_counted: bool) -> Group | Denial:
        request, layout = case.request, case.plan.layout
        name: str | None = None
        if request.endpoint is not None:
            case.endpoint = layout.endpoints.get(request.endpoint)
            if case.endpoint is None:
                return Denial("no_route", f"There is no endpoint {request.endpoint!r}")
            if not is_allowed(case.endpoint.settings.authorization, request):
                return _not_allowed(f"endpoint {request.endpoint}", request)
            name = case.endpoint.group
            case.step("endpoint", request.endpoint, "entered", f"group {name}" if name else "")
        if name is None:
            found = self._ask_rules(case, is_counted=is_counted)
            if isinstance(found, Denial):
                return found
            name = found
        group = None if name is None else layout.groups.get(name)
        if group is None:
            said = "No rule claims it and there is no fallback group"
            return Denial("no_route", said if name is None else f"There is no group {name!r}")
        return group

    def _ask_rules(self, case: _Case, *, is_counted: bool) -> str | Denial | None:
        for rule in case.plan.rules:
            answer = rule.ask(case.request, case.facts)
            if answer is None:
                case.trace.append(rule.missed)
            elif isinstance(answer, Failure):
                case.step("rule", rule.name, "failed", answer.detail)
            else:
                rule.hits += is_counted
                if answer.group is None:
                    case.step("rule", rule.name, "denied", answer.detail)
                    return Denial("rule", answer.message, rule.name)
                case.step("rule", rule.name, f"group {answer.group}", answer.detail)
                return answer.group
        fallback = case.plan.layout.fallback
        if fallback is not None:
            case.step("fallback", "routingFallback", f"group {fallback}", "no rule claims it")
        return fallback

    def _overridden(self, case: _Case, ruled: Group) -> Group | Denial:
        """The rules' group, or one that has the engine the client asks for."""
        request, layout = case.request, case.plan.layout
        engine = engine_asked_for(request)
        if engine is None:
            return ruled
        guard = self.ports.guard
        if guard is not None and not guard.sight(request).chooses_engine:
            case.step("override", engine, "refused", f"user {request.user}")
            return _not_allowed(f"engine {engine} by name: its role lacks chooses_engine", request)
        near = self.chain(case.plan, ruled, case.endpoint)
        # An endpoint's pool is a promise to those who share it: nobody leaves it.
        is_pooled = case.endpoint is not None and case.endpoint.group is not None
        found = group_with(engine, near if is_pooled else [*near, *layout.groups.values()], request)
        if not isinstance(found, Denial):
            case.only = engine
            case.step("override", engine, f"group {found.name}", "the client asks for this engine")
        return found

    # --- the member ---------------------------------------------------------------------------

    def _place(self, case: _Case, first: Group) -> _Choice | Denial:
        if not is_allowed(first.authorization, case.request):
            case.step("authorization", first.name, "refused", f"user {case.request.user}")
            return _not_allowed(f"group {first.name}", case.request)
        full: tuple[Group, list[Member]] | None = None
        lets_in = self.capacity.lets_in(case.endpoint)
        chain = self.chain(case.plan, first, case.endpoint) if case.only is None else [first]
        for group in chain:
            if group is not first:
                case.step("spill", group.name, "tried", "the group before it cannot take it now")
                if not is_allowed(group.authorization, case.request):
                    case.step("authorization", group.name, "refused", f"user {case.request.user}")
                    continue
            feasible = self._feasible(case, group)
            free = [m for m in feasible if lets_in and self.capacity.has_room(group, m)]
            choice = self._choose(case, group, free, would_queue=False) if free else None
            if choice is not None:
                return choice
            # Behind a doubtful translation, one that waits for an engine of its dialect is better.
            if any(not free or m.dialect == case.request.dialect for m in feasible):
                case.step("capacity", group.name, "full", self._fullness(group, case.endpoint))
                full = full or (group, feasible)
        choice = self._choose(case, *full, would_queue=True) if full else None
        return choice or self._best_effort(case) or self._nowhere(case, first)

    def _best_effort(self, case: _Case) -> _Choice | None:
        choice = case.doubtful
        if choice is None or case.plan.is_strict:
            return None
        case.step(
            "strategy",
            choice.group.name,
            choice.member.name,
            "best effort: no engine of its dialect is here",
        )
        return choice

    @staticmethod
    def chain(plan: Plan, first: Group, endpoint: Endpoint | None) -> list[Group]:
        """A group and those that take over for it, each once."""
        groups = plan.layout.groups
        found = [first]
        own = endpoint.settings.fallbackGroup if endpoint is not None else None
        following = groups.get(own or first.fallback or "")
        while following is not None and following not in found:
            found.append(following)
            following = groups.get(following.fallback or "")
        return found

    def _feasible(self, case: _Case, group: Group) -> list[Member]:
        if not group.is_enabled:
            case.may_pass = True
            case.step("feasibility", group.name, "refused", "the group is switched off")
            case.obstacles.append(f"group {group.name} is switched off")
            return []
        found = []
        for member in group.members:
            if case.only not in (None, member.engine_id):
                continue
            why = self.obstacle(case, group, member)
            if why is None:
                found.append(member)
            else:
                case.step("feasibility", member.name, "left out", why)
                case.obstacles.append(f"{member.name}: {why}")
        return found

    def obstacle(self, case: _Case, group: Group, member: Member) -> str | None:
        """Why a member cannot take the statement; None when it can."""
        engine_id = member.engine_id
        why = state_obstacle(member, self.ports.fleet.standing(engine_id))
        why = why or self.breaker(member, group).obstacle()
        if why is None and engine_id in case.without:
            why = case.why_without
        if why is not None:
            case.may_pass = case.may_pass or not member.unusable
            return why
        return statement_obstacle(member, case.request, case.facts, case.plan.layout.catalogs)

    def _choose(
        self, case: _Case, group: Group, members: list[Member], *, would_queue: bool
    ) -> _Choice | None:
        """The strategy's choice among members that can be told the statement in their dialect."""
        asked = Asked(case.request, case.facts, self.ports.predictor)
        left = [self._candidate(group, member) for member in members]
        by_name = {member.name: member for member in members}
        while left:
            pick = self._on_trial(case, left) or group.strategy.choose(left, asked)
            chosen = pick.candidate
            translation = self._translate(case.request, chosen.dialect)
            names = tuple(candidate.member for candidate in left)
            choice = _Choice(group, by_name[chosen.member], translation, would_queue, names)
            if translation.outcome in _GOOD:
                case.step("strategy", group.name, chosen.member, _reason(group, pick))
                return choice
            case.step("translation", chosen.member, translation.outcome, translation.reason)
            case.doubtful = case.doubtful or choice
            left = [candidate for candidate in left if candidate.dialect != chosen.dialect]
        return None

    def _on_trial(self, case: _Case, left: Sequence[Candidate]) -> Pick | None:
        """The member a trial wants for this statement, when it can take it."""
        trials, facts = self.ports.trials, case.facts
        if trials is None or not facts.is_read_only:
            return None
        found = trials.of(facts.template_id, case.request.gateway_id)
        if found is None:
            return None
        wanted = (one for one in left if one.engine_id == found.engine_id)
        chosen = next(wanted, None)
        return None if chosen is None else Pick(chosen, found.words)

    def _candidate(self, group: Group, member: Member) -> Candidate:
        return Candidate(
            member.name,
            member.engine_id,
            member.engine_type,
            member.dialect,
            self.capacity.load(member.engine_id),
            group.limits[member.name],
            self.line.in_group(group.name),
        )

    def _translate(self, request: Request, dialect: str) -> Translation:
        if dialect == request.dialect and not self.plan.translates_all:
            return Translation(request.sql, "not_needed", _NOT_NEEDED)
        translator = self.ports.translator
        if translator is None:
            return Translation(request.sql, _NO_TRANSLATOR.outcome, _NO_TRANSLATOR.reason)
        return translator.translate(
            request.sql, request.dialect, dialect, catalog=request.catalog, schema=request.schema
        )

    # --- the answer ---------------------------------------------------------------------------

    def _granted(self, case: _Case, choice: _Choice) -> Decision:
        request, group, member = case.request, choice.group, choice.member
        translation = choice.translation
        if translation.outcome == "translated":  # doubts are in the trace already
            case.step("translation", member.name, translation.outcome, translation.reason)
        verdict = self._checked(case, translation.sql, member.dialect)
        denial = None
        if verdict is not None and not verdict.allowed:
            case.step("guard", verdict.rule or "guard", "denied", verdict.reason)
            denial = Denial("guard", verdict.reason, verdict.rule)
        own = case.endpoint.settings.priority if case.endpoint is not None else None
        return Decision(
            gateway_id=request.gateway_id,
            group=group.name,
            member=member.name,
            engine_id=member.engine_id,
            denial=denial,
            source_dialect=request.dialect,
            target_dialect=member.dialect,
            sql=translation.sql if verdict is None or denial is not None else verdict.sql,
            translation=translation.outcome,
            translation_reason=translation.reason,
            facts=case.facts,
            trace=tuple(case.trace),
            capacity=self._capacity_facts(group, member, would_queue=choice.would_queue),
            estimate=self._estimated(case, group, member),
            priority=group.priority if own is None else own,
            tags=with_defaults(request.tags, group.default_tags),
            candidates=choice.candidates,
            without=case.without,
        )

    def _estimated(self, case: _Case, group: Group, member: Member) -> ScanEstimate | None:
        estimator = self.ports.estimator
        # New texts cost too much for strategies that do not look at it.
        if estimator is None or not group.is_predicted:
            return None
        found = estimator.estimate(case.request, case.facts)
        return found.priced(self.ports.per_terabyte_usd.get(member.engine_id))

    def _checked(self, case: _Case, sql: str, dialect: str) -> Verdict | None:
        guard = self.ports.guard
        return None if guard is None else guard.check(sql, dialect, case.request, case.facts)

    def _capacity_facts(self, group: Group, member: Member, *, would_queue: bool) -> CapacityFacts:
        return CapacityFacts(
            running=self.capacity.in_group(group.name),
            limit=group.total_limit,
            queued=self.line.in_group(group.name),
            queue_limit=group.queue_limit,
            member_running=self.capacity.running(member.engine_id),
            member_limit=group.limits[member.name],
            would_queue=would_queue,
        )

    def _fullness(self, group: Group, endpoint: Endpoint | None) -> str:
        if not self.capacity.lets_in(endpoint) and endpoint is not None:
            return f"endpoint {endpoint.name} runs {self.capacity.in_endpoint(endpoint.name)}"
        running = self.capacity.in_group(group.name)
        return f"{running} running, {self.line.in_group(group.name)} waiting"

    def _nowhere(self, case: _Case, group: Group) -> Denial:
        if case.doubtful is not None:
            reason = case.doubtful.translation.reason
            return Denial("translation", f"It cannot be translated: {reason}")
        why = "; ".join(dict.fromkeys(case.obstacles)) or "it has no members"
        if not case.may_pass:
            return Denial("no_route", f"No engine of group {group.name} takes it: {why}")
        return Denial("unavailable", f"No engine of group {group.name} can take it now: {why}")

    def _denied(self, case: _Case, denial: Denial, group: Group | None = None) -> Decision:
        return denied(case.request, case.facts, denial, case.trace, group)


def denied(
    request: Request,
    facts: StatementFacts,
    denial: Denial,
    trace: Sequence[Step],
    group: Group | None = None,
) -> Decision:
    """The decision that a statement is not run; its text stays as it came."""
    return Decision(
        gateway_id=request.gateway_id,
        group=None if group is None else group.name,
        denial=denial,
        source_dialect=request.dialect,
        sql=request.sql,
        facts=facts,
        trace=(*trace, Step("denied", denial.kind, "refused", denial.message)),
        tags=request.tags,
    )


def _not_allowed(what: str, request: Request) -> Denial:
    kind: DenialKind = "authorization"
    return Denial(kind, f"User {request.user or 'unknown'} may not use {what}")


def _reason(group: Group, pick: Pick) -> str:
    is_tried = pick.reason.startswith("trial ")
    return pick.reason if is_tried else f"{group.strategy_name}: {pick.reason}"
