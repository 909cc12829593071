"""Whose spend it is, how much may be spent, and who hears about it: groups, budgets, channels.

workload_groups:            # in order, the first that matches wins
- {name: finance, when: {user: ["fin_*"]}, team: Finance, cost_center: "100"}
- {name: etl, when: {tag: ["etl", "team:etl"], statement: [insert, merge]}, team: Platform}
finops:
budgets:
trino_month: {amount: "500", engine: trino, alert_at: [0.8, 1.0], notify: [chat]}
channels:
chat: {type: webhook, url: "env:FINOPS_WEBHOOK"}
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Literal, Self

import yaml
from pydantic import (
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)

from lakehouse_core.config.section import Section
from lakehouse_core.config.types import Count, Float, Name, Port, Price, SecretRef, Text
from lakehouse_core.config.units import Interval
from lakehouse_core.domain.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

# Globs: `*` any text, `?` one character, upper and lower case alike.
Globs = Annotated[tuple[Text, ...], Field(min_length=1)]
Currency = Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")]
RESERVED = ("idle", "unallocated", "storage")


class GroupCondition(Section):
    """What a query must be like; every key that is given must match, any of its globs does.

    Attributes:
        user: who ran it.
        group: a group of `finops.user_groups`, or the group the engine put the query in.
        tag: one of its tags.
        source: the tool it came from.
        table: one of the tables its template touches, e.g. `lake.sales.*`.
        template: the id of its template.
        statement: its kind: select, insert, merge, …
        engine: where it ran.
    """

    user: Globs | None = None
    group: Globs | None = None
    tag: Globs | None = None
    source: Globs | None = None
    table: Globs | None = None
    template: Globs | None = None
    statement: Globs | None = None
    engine: Globs | None = None

    @field_validator("*", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: object) -> object:
        """`user: ana` means `user: [ana]`."""
        return [value] if isinstance(value, str) else value

    @model_validator(mode="after")
    def _asks_for_something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError(
                "a condition names at least one of user, group, tag, source, table, "
                "template, statement, engine; `when: always` matches everything"
            )
        return self


class WorkloadGroup(Section):
    """A rule: queries that match belong to the group, unless a rule before it took them.

    Attributes:
        name: several rules may have one name.
        when: a condition, or `always`.
        team: who answers for the spend.
        cost_center: where it is booked.
    """

    name: Name
    when: GroupCondition | Literal["always"]
    team: Text | None = None
    cost_center: Text | None = None

    @field_validator("name")
    @classmethod
    def _is_not_reserved(cls, name: str) -> str:
        if name in RESERVED:
            raise ValueError(f"{name} is a row of its own in every report; choose another name")
        return name


class WebhookChannel(Section):
    """Alerts as JSON by HTTP POST; the address may hold a secret, so it is a reference."""

    type: Literal["webhook"]
    url: SecretRef
    timeout: Interval = timedelta(seconds=10)


class EmailChannel(Section):
    """Alerts as e-mail through an SMTP server."""

    type: Literal["email"]
    host: Text
    port: Port = 587
    security: Literal["starttls", "tls", "none"] = "starttls"
    user: Text | None = None
    password: SecretRef | None = None
    sender: Text
    to: Annotated[tuple[Text, ...], Field(min_length=1)]
    timeout: Interval = timedelta(seconds=20)


Channel = Annotated[WebhookChannel | EmailChannel, Field(discriminator="type")]
Share = Annotated[Float, Field(gt=0, le=10)]


class Budget(Section):
    """How much may be spent in a period, on what.

    Attributes:
        amount: in `currency`.
        period: of the calendar, in UTC.
        engine, workload, team, user: what counts; none of them: everything.
        alert_at: shares of the amount at which an alert is raised, once per period each.
        alert_on_forecast: an alert as soon as the forecast passes the amount.
        notify: names of channels.
    """

    amount: Annotated[Price, Field(gt=0)]
    currency: Currency = "USD"
    period: Literal["day", "week", "month"] = "month"
    engine: Text | None = None
    workload: Text | None = None
    team: Text | None = None
    user: Text | None = None
    alert_at: Annotated[tuple[Share, ...], Field(min_length=1)] = (0.8, 1.0)
    alert_on_forecast: bool = True
    notify: tuple[Name, ...] = ()


class AnomalySettings(Section):
    """When a day's spend is told as unusual.

    Attributes:
        history: how many days before it are looked at.
        least_days: fewer of them say nothing.
        sensitivity: how many robust standard deviations above the median.
        least_ratio: at least so much above the median, as a share of it.
        least_amount: smaller differences are nobody's concern.
    """

    enabled: bool = True
    history: Count = 28
    least_days: Annotated[Count, Field(ge=5)] = 7
    sensitivity: Annotated[Float, Field(gt=0)] = 3.5
    least_ratio: Annotated[Float, Field(ge=0)] = 0.25
    least_amount: Price = Decimal("1")
    notify: tuple[Name, ...] = ()


class FocusSettings(Section):
    """What a FOCUS export says about the account; FOCUS wants all of it, nobody can measure it."""

    billing_account_id: Text = "lakehelm"
    billing_account_name: Text | None = None
    invoice_issuer: Text = "self-hosted"


class FinOpsConfig(Section):
    """Groups' surroundings, budgets, alerts, exports.

    Attributes:
        default_group: where queries go that no rule matches; always shown.
        user_groups: group of users → globs of user names.
        every: how often budgets and anomalies are looked at.
    """

    default_group: Name = "other"
    user_groups: dict[Name, Globs] = {}
    budgets: dict[Name, Budget] = {}
    channels: dict[Name, Channel] = {}
    anomalies: AnomalySettings = AnomalySettings()
    every: Interval = timedelta(minutes=5)
    focus: FocusSettings = FocusSettings()

    @field_validator("default_group")
    @classmethod
    def _is_not_reserved(cls, name: str) -> str:
        if name in RESERVED:
            raise ValueError(f"{name} is a row of its own in every report; choose another name")
        return name


_GROUPS: TypeAdapter[tuple[WorkloadGroup, ...]] = TypeAdapter(tuple[WorkloadGroup, ...])


def parse_groups(text: str) -> tuple[WorkloadGroup, ...]:
    """Rules as somebody edits them: the YAML list of `workload_groups`, with or without its key.

    Raises:
        ConfigError: says which rule is wrong, and how.
    """
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        raise ConfigError(f"workload_groups: this is not YAML{where}") from error
    if isinstance(found, dict) and set(found) == {"workload_groups"}:
        found = found["workload_groups"]
    try:
        return _GROUPS.validate_python(found or [])
    except ValidationError as error:
        lines = "; ".join(
            f"rule {'.'.join(str(n + 1) if isinstance(n, int) else n for n in one['loc'])}: "
            f"{one['msg']}"
            for one in error.errors(include_input=False, include_url=False)
        )
        raise ConfigError(f"workload_groups: {lines}") from error


def groups_text(groups: Sequence[WorkloadGroup]) -> str:
    """Rules as YAML, as they would stand in the configuration."""
    plain = [one.model_dump(mode="json", exclude_none=True) for one in groups]
    return str(yaml.safe_dump({"workload_groups": plain}, sort_keys=False, allow_unicode=True))
