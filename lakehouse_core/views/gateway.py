"""The gateway as its other clients see it: the rules in force, their load, explaining, reloading.

Pages ask over HTTP like everybody else; nothing is decided on this side.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import httpx

from lakehouse_core.domain.errors import FilterError, LakehouseError, Transient
from lakehouse_core.routing.override import ENGINE_HEADER
from lakehouse_core.views.routing import TraceStep

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakehouse_core.config.gateway import GatewayConfig

ANSWER_SECONDS = 15.0
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 compared with, not listened on


class GatewayAwayError(Transient, LakehouseError):
    """Raised when the gateway does not answer, or not as it should."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleNow:
    """A rule in force; `hits` since the gateway was started or the rules were read."""

    rule: str
    says: Mapping[str, Any]
    hits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberNow:
    """A member of a group; `obstacle` says why it gets nothing now."""

    member: str
    engine_id: str
    running: int
    limit: int | None
    circuit: str
    obstacle: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupNow:
    """A group and its load at this moment."""

    group: str
    strategy: str
    running: int
    running_limit: int | None
    waiting: int
    queue_limit: int | None
    members: tuple[MemberNow, ...]


@dataclass(frozen=True, slots=True)
class Override:
    """A header by which a client may choose the group or the engine itself."""

    header: str
    value: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RulesNow:
    """The rules in the order they are asked, and the groups."""

    source: str
    fallback: str | None
    rules: tuple[RuleNow, ...]
    groups: tuple[GroupNow, ...]

    @property
    def overrides(self) -> tuple[Override, ...]:
        """What a client may ask for; who is let in, groups and roles say."""
        groups = (
            Override(str(rule.says["headerName"]), value, f"group {group}")
            for rule in self.rules
            if "headerName" in rule.says
            for value, group in rule.says.get("headerValueToGroup", {}).items()
        )
        members = (member.engine_id for group in self.groups for member in group.members)
        engines = (
            Override(ENGINE_HEADER, engine, f"engine {engine}") for engine in dict.fromkeys(members)
        )
        return (*groups, *engines)


@dataclass(frozen=True, slots=True)
class Reloaded:
    """How a reload went; when it failed the rules of before are in force."""

    is_done: bool
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A statement and its circumstances, for `explain`."""

    sql: str
    user: str
    catalog: str | None = None
    schema: str | None = None
    source: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """What would happen to a statement.

    Attributes:
        denial: why it would not run; None: it would.
        cost_usd: of reading what it reads; None: not known, or the engine is not billed so.
        basis: where files and bytes come from, or why they are not known.
        would_queue: it would have to wait, as things stand at this moment.
    """

    denial: str | None
    group: str | None
    engine_id: str | None
    source_dialect: str
    target_dialect: str | None
    sql: str
    translated_sql: str
    translation: str
    translation_reason: str
    statement_kind: str
    tables: tuple[str, ...]
    parse_error: str | None
    steps: tuple[TraceStep, ...]
    files: int | None
    bytes: int | None
    cost_usd: Decimal | None
    basis: str
    would_queue: bool
    running: int
    limit: int | None

    @property
    def why(self) -> str:
        """The steps that settled it, in one line."""
        chosen = [
            step
            for step in self.steps
            if step.stage in ("endpoint", "strategy")
            or (step.stage in ("rule", "fallback") and step.result.startswith("group "))
        ]
        return "; ".join(
            f"{step.subject}: {step.result}" + (f" ({step.detail})" if step.detail else "")
            for step in chosen
        )


class GatewayAdmin:
    """Asks the gateway's admin port."""

    def __init__(self, gateway: GatewayConfig, seconds: float = ANSWER_SECONDS) -> None:
        host = _EVERYWHERE.get(gateway.host, gateway.host)
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{gateway.admin_port}"
        self._seconds = seconds

    def rules(self) -> RulesNow:
        """The rules in force and the load of the groups.

        Raises:
            GatewayAwayError: it does not answer, or has no SQL port.
        """
        _, said = self._ask("GET", "/v1/route/rules")
        groups = [
            GroupNow(**group | {"members": tuple(MemberNow(**one) for one in group["members"])})
            for group in said["groups"]
        ]
        return RulesNow(
            source=said["source"],
            fallback=said["routing_fallback"],
            rules=tuple(RuleNow(**rule) for rule in said["rules"]),
            groups=tuple(groups),
        )

    def reload(self) -> Reloaded:
        """Let it read its rules again.

        Raises:
            GatewayAwayError: it does not answer.
        """
        _, said = self._ask("POST", "/v1/route/reload")
        return Reloaded(bool(said["is_done"]), str(said["message"]))

    def explain(self, question: Question) -> Explained:
        """What would happen to a statement; nothing is run.

        Raises:
            FilterError: the question is not one.
            GatewayAwayError: it does not answer.
        """
        body = {
            "sql": question.sql,
            "user": question.user,
            "catalog": question.catalog,
            "schema": question.schema,
            "source": question.source,
            "headers": dict(question.headers),
            "tags": list(question.tags),
        }
        status, said = self._ask("POST", "/v1/route/explain", body)
        if status != HTTPStatus.OK:
            raise FilterError(str(said.get("error", {}).get("message", said)))
        return _explained(said)

    def _ask(self, method: str, path: str, body: Any = None) -> tuple[int, dict[str, Any]]:
        try:
            answer = httpx.request(
                method, self.url + path, json=body, timeout=self._seconds, trust_env=False
            )
            said = answer.json()
        except httpx.HTTPError as error:
            raise GatewayAwayError(
                f"The gateway does not answer at {self.url} ({type(error).__name__}): "
                "start it with `lakehelm up`"
            ) from error
        except ValueError as error:
            raise GatewayAwayError(f"What answers at {self.url} is no gateway of ours") from error
        if answer.status_code in (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED):
            raise GatewayAwayError(
                f"The gateway at {self.url} takes no SQL: set gateway.sql.enabled and restart it"
            )
        if answer.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR or not isinstance(said, dict):
            raise GatewayAwayError(f"The gateway at {self.url} failed: its log says more")
        return answer.status_code, said


def _explained(said: dict[str, Any]) -> Explained:
    denial, read, room = said["denial"], said["estimate"], said["capacity"]
    return Explained(
        denial=None if denial is None else denial["message"],
        steps=tuple(TraceStep(**step) for step in said["trace"]),
        tables=tuple(said["tables"]),
        files=read["files"],
        bytes=read["bytes"],
        cost_usd=None if read["cost_usd"] is None else Decimal(read["cost_usd"]),
        basis=read["basis"],
        would_queue=room["would_queue"],
        running=room["running"],
        limit=room["limit"],
        **{
            name: said[name]
            for name in (
                *("group", "engine_id", "source_dialect", "target_dialect", "sql"),
                *("translated_sql", "translation", "translation_reason", "statement_kind"),
                "parse_error",
            )
        },
    )
