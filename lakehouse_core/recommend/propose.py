"""From a remedy to a proposal: evidence, what is predicted, what it costs, how urgent it is."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from lakehouse_core.domain.maintenance import Action, Change, Evidence, State
from lakehouse_core.health import assess
from lakehouse_core.maintenance.decisions import PROPOSER
from lakehouse_core.maintenance.plan import plan_hash
from lakehouse_core.recommend import model
from lakehouse_core.recommend.cures import CURES
from lakehouse_core.recommend.model import NOTHING, Span

if TYPE_CHECKING:
    from collections.abc import Iterable
    from decimal import Decimal

    from lakehouse_core.domain.maintenance import Kind
    from lakehouse_core.recommend.cures import Remedy
    from lakehouse_core.recommend.facts import Reader, Subject

SHOWN_READERS = 10
# A cure that brings less than this is not worth anybody's attention.
LEAST_POINTS = 1.0


def dedupe_key(table_id: str, kind: Kind) -> str:
    """Table and kind: there is one open action of each."""
    return f"{kind.value} {table_id}"


def proposals(subject: Subject) -> list[Action]:
    """What is proposed for a table: only what would change something."""
    found = []
    for cure in CURES:
        remedy = cure.remedy(subject)
        if remedy is not None:
            action = _action(subject, remedy)
            if action is not None:
                found.append(action)
    return found


def _action(subject: Subject, remedy: Remedy) -> Action | None:
    score = subject.health.score
    after = assess(remedy.after, subject.limits, subject.now).score
    if score is None or after is None or after - score < LEAST_POINTS:
        return None
    prices = subject.config.prices
    savings = _savings(subject, remedy)
    gain = _gain(savings, remedy, subject)
    cost = model.cost_usd(remedy.plan.input_bytes, prices)
    predicted = (
        *remedy.changes,
        Change(name="score", unit="points", before=round(score, 1), after=round(after, 1)),
        *_planning(subject, remedy),
        *_money(gain),
    )
    usd = model.money(gain.likely) if gain else None
    settings = subject.config.maintenance
    return Action(
        action_id=f"a{secrets.token_hex(6)}",
        dedupe_key=dedupe_key(subject.table.table_id, remedy.kind),
        revision=0,
        kind=remedy.kind,
        table_id=subject.table.table_id,
        state=State.PROPOSED,
        title=remedy.title,
        reason=remedy.reason,
        evidence=_evidence(savings),
        evidence_at=subject.now,
        predicted=predicted,
        risk=remedy.risk,
        plan=remedy.plan,
        plan_hash=plan_hash(remedy.plan, predicted),
        gain_usd_month=usd,
        cost_usd=cost,
        priority=model.priority(usd, cost, after - score, remedy.plan.input_bytes),
        proposed_by=PROPOSER,
        proposed_at=subject.now,
        updated_at=subject.now,
        expires_at=subject.now + settings.expires_after,
    )


def _savings(subject: Subject, remedy: Remedy) -> list[tuple[Reader, Span | None]]:
    time_share = model.time_saved(subject.metrics, remedy.live)
    bytes_share = model.bytes_saved(subject.metrics, remedy.live)
    engines = {one.engine_id for one in subject.readers}
    rates = {engine: subject.config.prices.rates(engine) for engine in engines}
    days = subject.observed_days
    return [
        (one, model.usd_per_month(one, rates[one.engine_id], days, time_share, bytes_share))
        for one in subject.readers
    ]


def _gain(
    savings: Iterable[tuple[Reader, Span | None]], remedy: Remedy, subject: Subject
) -> Span | None:
    """What is saved per month by all readers, and by what is not stored any more."""
    parts = [saving for _, saving in savings if saving is not None]
    if remedy.freed_bytes.high > 0:
        stored = model.storage_usd_per_month(remedy.freed_bytes, subject.config.prices)
        parts += [stored] if stored is not None else []
    if not parts:
        return None
    total = NOTHING
    for part in parts:
        total = total.plus(part)
    return total


def _evidence(savings: list[tuple[Reader, Span | None]]) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(
            engine_id=reader.engine_id,
            template_id=reader.template_id,
            runs=reader.runs,
            bytes_scanned=reader.bytes_scanned,
            execution_ms=reader.execution_ms,
            saving_usd_month=_usd(saving),
        )
        for reader, saving in savings[:SHOWN_READERS]
    )


def _usd(saving: Span | None) -> Decimal | None:
    return None if saving is None else model.money(saving.likely)


def _planning(subject: Subject, remedy: Remedy) -> tuple[Change, ...]:
    """Planning time of a query, from what engines measured; nothing where none told."""
    told = [(one.planning_ms, one.runs) for one in subject.readers if one.planning_ms]
    if not told:
        return ()
    before = sum(ms * runs for ms, runs in told) / sum(runs for _, runs in told)
    after = model.planning_after(before, subject.metrics, remedy.live)
    if after.likely >= before * (1 - subject.config.maintenance.min_difference):
        return ()
    return (
        Change(
            name="planning_ms",
            unit="ms",
            before=round(before, 3),
            after=round(after.likely, 3),
            low=round(after.low, 3),
            high=round(after.high, 3),
        ),
    )


def _money(gain: Span | None) -> tuple[Change, ...]:
    if gain is None:
        return ()
    return (
        Change(
            name="saving_usd_month",
            unit="USD/month, modelled",
            before=0.0,
            after=round(gain.likely, 6),
            low=round(gain.low, 6),
            high=round(gain.high, 6),
        ),
    )
