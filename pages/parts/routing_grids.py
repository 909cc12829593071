"""Tables of rules, groups, members and decisions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pages.parts import cells

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lakehouse_core.views.gateway import GroupNow, MemberNow, RulesNow
    from lakehouse_core.views.routing import Decided, GroupService, RoutingReport, RuleHits


def rules_grid(now: RulesNow | None, seen: RoutingReport) -> None:
    """The rules in the order they are asked; without a gateway, those that decided something."""
    if now is None:
        rows = [_rule(hits.rule, None, None, hits) for hits in seen.rules]
    else:
        rows = [
            _rule(rule.rule, _text(rule.says), rule.hits, seen.hits_of(rule.rule))
            for rule in now.rules
        ]
        claims = seen.hits_of("routingFallback")
        rows.append(_rule("routingFallback", f"group {now.fallback or 'none'}", None, claims))
    cells.show(
        rows,
        {
            "rule": "Rule, first match wins",
            "hits": cells.counted(f"Decided, {seen.window.label}"),
            "denied": cells.counted("Of them refused"),
            "last": cells.short_time_of("Last"),
            "since": cells.counted("Since it was read", "By this gateway process."),
            "says": cells.wide("Says"),
        },
    )


def _rule(name: str, says: str | None, since: int | None, hits: RuleHits | None) -> dict[str, Any]:
    return {
        "rule": name,
        "hits": hits.hits if hits else 0,
        "denied": hits.denied if hits else 0,
        "last": hits.last_at if hits else None,
        "since": since,
        "says": says,
    }


def groups_grid(now: RulesNow, seen: RoutingReport) -> None:
    """Each member of each group: its load now, and what its group did in the window."""
    rows = [
        _member(group, member, seen.service_of(group.group))
        for group in now.groups
        for member in group.members
    ]
    cells.show(
        rows,
        {
            "group": "Group",
            "strategy": "Strategy",
            "member": "Member",
            "engine": "Engine",
            "running": cells.counted("Running now"),
            "limit": cells.counted("At most"),
            "waiting": cells.counted("Waiting for the group"),
            "queue": cells.counted("May wait", "Empty: no limit."),
            "circuit": "Circuit",
            "statements": cells.counted(f"Group's statements, {seen.window.label}"),
            "denied": cells.counted("Of them refused"),
            "queue_p95": cells.number("Its wait p95", "%.3f s"),
            "obstacle": cells.wide("Gets nothing because"),
        },
    )


def _member(group: GroupNow, member: MemberNow, service: GroupService | None) -> dict[str, Any]:
    return {
        "group": group.group,
        "strategy": group.strategy,
        "member": member.member,
        "engine": member.engine_id,
        "running": member.running,
        "limit": member.limit,
        "waiting": group.waiting,
        "queue": group.queue_limit,
        "circuit": cells.state_word(member.circuit),
        "statements": service.statements if service else 0,
        "denied": service.denied if service else 0,
        "queue_p95": cells.seconds(service.queue_p95_ms) if service else None,
        "obstacle": member.obstacle,
    }


def _text(says: Mapping[str, Any]) -> str:
    return json.dumps(says, ensure_ascii=False)


def decisions_grid(rows: Sequence[Decided], key: str, on_select: Callable[[], None]) -> None:
    """What the gateway was given, newest first; a row can be chosen."""
    cells.show(
        [
            {
                "submitted": row.submitted_at,
                "user": row.user_name,
                "status": cells.state_word("refused" if row.denial else row.status),
                "group": row.cluster_group,
                "engine": row.engine_id,
                "denial": row.denial,
                "translation": row.translation,
                "decision": row.decision_ms,
                "queue": row.queue_ms,
                "engine_time": cells.seconds(row.engine_ms),
                "rows": row.rows_sent,
                "protocol": row.protocol,
                "id": row.gateway_id,
            }
            for row in rows
        ],
        {
            "submitted": cells.short_time_of("Submitted"),
            "user": "User",
            "status": "Status",
            "group": "Group",
            "engine": "Engine",
            "denial": "Refused by",
            "translation": "Translation",
            "decision": cells.number("Decision", "%.2f ms"),
            "queue": cells.number("Queue", "%.1f ms"),
            "engine_time": cells.number("To the first row", "%.2f s"),
            "rows": cells.counted("Rows sent"),
            "protocol": "Protocol",
            "id": "Gateway id",
        },
        key=key,
        on_select=on_select,
    )
