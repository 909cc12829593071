"""What is asked of the router, what it answers, and the ports it decides with.

decision = router.decide(Request(sql="SELECT 1", dialect="trino", user="ann"))
decision.engine_id, decision.sql, [str(step) for step in decision.trace]

A front end builds the `Request`, the query service acts on the `Decision`. Nothing here does I/O:
every port answers from memory, so that deciding stays under a tenth of a millisecond.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, Protocol

from lakehouse_core.domain.cost import TB
from lakehouse_core.domain.engine import ConfiguredState, ObservedState
from lakehouse_core.domain.query import EngineId, StatementKind, TemplateId

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from decimal import Decimal

# `not_needed`: the engine speaks the client's dialect; `doubtful`: something in the text may mean
# something else there; `fallback`: it could not be translated and goes out as it came, if at all.
TranslationOutcome = Literal["not_needed", "translated", "doubtful", "fallback"]
Objective = Literal["cost", "latency", "throughput"]
DenialKind = Literal[
    "rule",  # a router said deny
    "authorization",  # the group does not take this user
    "guard",
    "translation",
    "no_route",  # no group, no such endpoint, or none of its engines takes such a statement
    "unavailable",  # no member may take the statement now
    "queue_full",
    "queue_timeout",
]

_NO_TEXTS: Mapping[str, str] = {}

READ_ONLY_KINDS = frozenset(
    {
        StatementKind.SELECT,
        StatementKind.DESCRIBE,
        StatementKind.EXPLAIN,
    }
)
_WRITING = frozenset(
    {"INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "ALTER", "DROP", "CALL", "TRUNCATE"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One statement as a client sent it.

    Attributes:
        sql: the statement.
        dialect: sqlglot's name of the dialect it is written in.
        protocol: how it came, in QueryFlux's words: trinoHttp, postgresWire, …; ours: console.
        user: who asks; authenticated where the front end authenticates.
        groups: groups the authentication gave the user.
        role: the one asked for; decides about guards and grants.
        proven_role: the one that password or token proved; its user has it.
        tags: as sent: `etl`, `team:finance`.
        headers: of the client's request, or start-up parameters; names in lower case.
        source: the client's program.
        catalog: what completes unqualified table names.
        schema: as above.
        session: session properties of the client.
        endpoint: name of the endpoint it came through; None: the default one.
        gateway_id: our id of the query, passed on to the engine.
    """

    sql: str
    dialect: str
    gateway_id: str = ""
    protocol: str = "trinoHttp"
    user: str | None = None
    groups: tuple[str, ...] = ()
    role: str | None = None
    proven_role: str | None = None
    tags: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=lambda: _NO_TEXTS)
    source: str | None = None
    catalog: str | None = None
    schema: str | None = None
    session: Mapping[str, str] = field(default_factory=lambda: _NO_TEXTS)
    endpoint: str | None = None


@dataclass(frozen=True, slots=True)
class StatementFacts:
    """What the text alone tells; the same for every text that differs in literals only.

    Attributes:
        template_id: see `lakehouse_core.sql`.
        kind: what the statement does.
        tables: base tables, completed with the request's catalog and schema where it has them.
        error: why the text was not understood; tables are empty then.
        template: the text without its literals and layout.
        catalogs: catalogs those tables name.
    """

    template_id: TemplateId
    kind: StatementKind
    tables: tuple[str, ...] = ()
    error: str | None = None
    template: str = ""
    catalogs: frozenset[str] = frozenset()

    @property
    def is_read_only(self) -> bool:
        """Whether running it twice changes nothing; False when the text was not understood."""
        if self.error is not None or self.kind not in READ_ONLY_KINDS:
            return False
        if self.kind is not StatementKind.EXPLAIN:
            return True
        # EXPLAIN ANALYZE runs what it explains.
        return _WRITING.isdisjoint(self.template.upper().split(maxsplit=8)[:8])


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a decision.

    Attributes:
        stage: endpoint, rule, fallback, override, authorization, feasibility, capacity, spill,
            strategy, translation, guard, queue, retry, shadow, denied.
        subject: what it is about: the router's type and number, the group, the member.
        result: what came of it: matched, passed, refused, chosen, …
        detail: why, in words.
    """

    stage: str
    subject: str
    result: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.stage} {self.subject}: {self.result}" + (
            f" ({self.detail})" if self.detail else ""
        )


@dataclass(frozen=True, slots=True)
class Denial:
    """Why a statement is not run; `message` is what the client reads."""

    kind: DenialKind
    message: str
    rule: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanEstimate:
    """What a statement would read.

    Attributes:
        files: data files after pruning, and files of deletes; None when nobody can know.
        bytes: their size.
        cost_usd: what reading them costs on the chosen engine, where it has a price.
        basis: where the numbers come from, or why there are none.
    """

    files: int | None = None
    bytes: int | None = None
    cost_usd: Decimal | None = None
    basis: str = ""

    def priced(self, per_terabyte_usd: Decimal | None) -> ScanEstimate:
        """The same with what an engine asks that bills by bytes; None: it does not."""
        if per_terabyte_usd is None or self.bytes is None or self.cost_usd is not None:
            return self
        return replace(self, cost_usd=per_terabyte_usd * self.bytes / TB)


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityFacts:
    """How full the chosen group and member are at the moment of the decision.

    Attributes:
        running: statements the group runs.
        limit: how many it may run; None: as many as its members may.
        queued: statements that wait for it.
        queue_limit: how many may wait; None: no limit but memory's.
        member_running: statements the chosen member runs.
        member_limit: how many it may run.
        would_queue: the statement would have to wait.
    """

    running: int = 0
    limit: int | None = None
    queued: int = 0
    queue_limit: int | None = None
    member_running: int = 0
    member_limit: int | None = None
    would_queue: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Where a statement runs and what is sent there, or why it is not run.

    Attributes:
        gateway_id: of the request.
        group: the cluster group; None when none was found.
        member: name of the chosen member in its group (QueryFlux's cluster).
        engine_id: the engine behind that member.
        denial: why it is not run; then `engine_id` may be None.
        source_dialect: what the client wrote.
        target_dialect: what the engine speaks; None without an engine.
        sql: the text as it will run, translated and guarded; the client's own when denied.
        translation: whether it was translated.
        translation_reason: why so.
        facts: what the text tells.
        trace: every step, in order.
        capacity: how full it was.
        estimate: what it would read; None: the strategy did not ask for it.
        priority: larger goes first in a queue.
        tags: the request's, and the group's own.
        candidates: members that could have taken it.
        without: engines that have failed it already.
        is_shadow: the statement was answered before; its result is thrown away.
    """

    gateway_id: str
    group: str | None = None
    member: str | None = None
    engine_id: EngineId | None = None
    denial: Denial | None = None
    source_dialect: str
    target_dialect: str | None = None
    sql: str
    translation: TranslationOutcome = "not_needed"
    translation_reason: str = ""
    facts: StatementFacts
    trace: tuple[Step, ...] = ()
    capacity: CapacityFacts = CapacityFacts()
    estimate: ScanEstimate | None = None
    priority: int = 0
    tags: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()
    without: frozenset[EngineId] = frozenset()
    is_shadow: bool = False


# --- ports ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Translation:
    """A text in another dialect, and how that went."""

    sql: str
    outcome: TranslationOutcome
    reason: str = ""


class Translator(Protocol):
    """Turns a text into another dialect; never raises on account of the text."""

    def translate(
        self,
        sql: str,
        source: str,
        target: str,
        *,
        catalog: str | None = None,
        schema: str | None = None,
    ) -> Translation:
        """The text as the target dialect writes it."""
        ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a text may run for a role.

    Attributes:
        allowed: False: nothing is sent to any engine.
        rule: the guard that refused.
        reason: what the client reads.
        sql: the text to run, after masks, row filters and limits.
    """

    allowed: bool
    sql: str
    rule: str | None = None
    reason: str = ""


class Sight(Protocol):
    """What somebody may know of: two that are equal see the same."""

    @property
    def chooses_engine(self) -> bool:
        """Whether they may name the engine that runs their statement."""
        ...

    def visible(self, parts: tuple[str, ...], columns: tuple[str, ...]) -> tuple[str, ...] | None:
        """The columns of a table that may be known; None: not even the table.

        Args:
            parts: its full name, in lower case.
            columns: all of them.
        """
        ...


@dataclass(frozen=True, slots=True)
class Everything:
    """The `Sight` where nobody guards."""

    chooses_engine: bool = True

    def visible(self, parts: tuple[str, ...], columns: tuple[str, ...]) -> tuple[str, ...] | None:
        """All of them."""
        del parts
        return columns


class Guard(Protocol):
    """Looks at the text as the engine would get it; fails closed."""

    def sight(self, request: Request) -> Sight:
        """What who asks may know of."""
        ...

    def check(self, sql: str, dialect: str, request: Request, facts: StatementFacts) -> Verdict:
        """Whether the text may run for who asks, and how."""
        ...


class ScanEstimator(Protocol):
    """Says what a statement would read, from metadata that is in memory."""

    def estimate(self, request: Request, facts: StatementFacts) -> ScanEstimate:
        """The scan of a statement; `basis` says why when nothing is known."""
        ...


@dataclass(frozen=True, slots=True)
class Candidate:
    """A member that may take the statement now, or when it is its turn.

    Attributes:
        running: statements on its engine, those of others included.
        limit: how many it may run; None: no limit.
        waiting: statements that wait for a place in its group.
    """

    member: str
    engine_id: EngineId
    engine_type: str
    dialect: str
    running: int
    limit: int | None
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class Preference:
    """What a predictor makes of the candidates.

    Attributes:
        engine_id: the one to take; None: it abstains and the group's order decides.
        reason: the evidence in words, or why there is none.
    """

    engine_id: EngineId | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a group asks of a prediction.

    Attributes:
        group: its name.
        latency_seconds: only engines whose 95th percentile keeps it are chosen; None: no promise.
        explore_share: of its reads, how many may be tried on an engine little is known of.
        explore_budget: share of what all its statements are worth that tries may cost.
    """

    group: str = ""
    latency_seconds: float | None = None
    explore_share: float = 0.02
    explore_budget: float = 0.02


class Predictor(Protocol):
    """Chooses among feasible members by what their past says, or abstains."""

    def choose(
        self,
        objective: Objective,
        request: Request,
        facts: StatementFacts,
        candidates: Sequence[Candidate],
        terms: Terms | None = None,
    ) -> Preference:
        """The member that serves the objective best."""
        ...


@dataclass(frozen=True, slots=True)
class EngineStanding:
    """What the fleet knows of an engine.

    Attributes:
        configured: what people want.
        observed: what the probe saw last.
        reason: why it is not active or not healthy, in words.
        running: statements it runs, those of others included; None: it does not say.
    """

    configured: ConfiguredState = ConfiguredState.ACTIVE
    observed: ObservedState = ObservedState.HEALTHY
    reason: str = ""
    running: int | None = None


class Fleet(Protocol):
    """State, health and load of every engine, from memory."""

    def standing(self, engine_id: EngineId) -> EngineStanding:
        """What is known of an engine; UNKNOWN for one that was never seen."""
        ...
