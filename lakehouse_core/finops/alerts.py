"""An alert and how it reaches people: one record, shown as JSON or as a mail, sent once.

An alert says what it is about, how much, since when, and who caused it. Its id is made of what it
is about, so that the same finding is one alert however often it is looked at. A channel that does
not answer is tried again, less and less often, and given up after a day; what became of it is kept.
"""

from __future__ import annotations

import hashlib
import json
import smtplib
import ssl
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from decimal import Decimal
from email.message import EmailMessage
from typing import TYPE_CHECKING, Any

import httpx

from lakehouse_core.config.finops import WebhookChannel
from lakehouse_core.config.secrets import resolve_secret
from lakehouse_core.domain.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from lakehouse_core.config.finops import Channel, EmailChannel

MOST_ATTEMPTS = 10
_FIRST_PAUSE = timedelta(minutes=1)
_LONGEST_PAUSE = timedelta(hours=4)
SENT = "sent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contributor:
    """Who or what a sum is made of: a dimension, its value, its part."""

    dimension: str
    name: str
    amount: Decimal
    change: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A row of `alert`.

    Attributes:
        alert_id: what, when and which limit.
        kind: budget, forecast, anomaly or maintenance.
        subject: the budget, or what was unusual.
        scope: what counts, in words.
        title: what happened, in a line.
        body: what, how much, since when, who, in sentences.
        since: from when on.
        amount: how much; without a currency it is not about money, and nobody is told.
        expected: the budget, or what is usual.
        who: the largest contributors first.
        channels: who is to hear of it.
        delivered: channel → `sent …`, or why not yet.
        settled: every channel was reached or given up.
    """

    alert_id: str
    kind: str
    subject: str
    scope: str
    title: str
    body: str
    since: datetime
    raised_at: datetime
    amount: Decimal
    expected: Decimal
    currency: str
    who: tuple[Contributor, ...] = ()
    channels: tuple[str, ...] = ()
    delivered: dict[str, str]
    attempts: int = 0
    next_try_at: datetime | None = None
    settled: bool = False


def as_json(alert: Alert) -> dict[str, Any]:
    """What a webhook is sent; `text` alone is what chat tools show."""
    return {
        "text": f"{alert.title}\n{alert.body}",
        "id": alert.alert_id,
        "kind": alert.kind,
        "subject": alert.subject,
        "scope": alert.scope,
        "amount": str(alert.amount) if alert.currency else None,
        "expected": str(alert.expected) if alert.currency else None,
        "currency": alert.currency or None,
        "since": alert.since.isoformat(),
        "raised_at": alert.raised_at.isoformat(),
        "contributors": [
            {k: str(v) if isinstance(v, Decimal) else v for k, v in asdict(one).items()}
            for one in alert.who
        ],
    }


def as_mail(alert: Alert, channel: EmailChannel) -> EmailMessage:
    """The alert as a letter."""
    mail = EmailMessage()
    mail["Subject"] = " ".join(alert.title.split())
    mail["From"] = channel.sender
    mail["To"] = ", ".join(channel.to)
    # A name may hold blanks and letters of any kind, a Message-ID may not.
    digest = hashlib.sha256(alert.alert_id.encode()).hexdigest()[:32]
    mail["Message-ID"] = f"<{alert.kind}.{digest}@lakehelm>"
    mail.set_content(alert.body)
    return mail


def deliver(alert: Alert, channels: Mapping[str, Channel], now: datetime) -> Alert:
    """Try every channel that has not been reached; returns the alert with what became of it."""
    delivered = dict(alert.delivered)
    for name in alert.channels:
        if delivered.get(name, "").startswith(SENT):
            continue
        channel = channels.get(name)
        fault = f"there is no channel {name}" if channel is None else _send(alert, channel)
        delivered[name] = f"{SENT} {now.isoformat()}" if fault is None else f"failed: {fault}"
    attempts = alert.attempts + 1
    is_done = all(delivered[name].startswith(SENT) for name in alert.channels)
    pause = min(_FIRST_PAUSE * 2**alert.attempts, _LONGEST_PAUSE)
    return replace(
        alert,
        delivered=delivered,
        attempts=attempts,
        settled=is_done or attempts >= MOST_ATTEMPTS,
        next_try_at=None if is_done else now + pause,
    )


def _send(alert: Alert, channel: Channel) -> str | None:
    """What went wrong, in words without the address; None when it was taken."""
    try:
        if isinstance(channel, WebhookChannel):
            return _post(alert, channel)
        return _mail(alert, channel)
    except ConfigError as error:
        return str(error)
    except (httpx.HTTPError, httpx.InvalidURL, smtplib.SMTPException, OSError) as error:
        # Their texts may quote the address, which may hold a secret.
        return f"{type(error).__name__}: it did not take the message"


def _post(alert: Alert, channel: WebhookChannel) -> str | None:
    answer = httpx.post(
        resolve_secret(channel.url),
        content=json.dumps(as_json(alert), ensure_ascii=False),
        headers={"Content-Type": "application/json"},
        timeout=channel.timeout.total_seconds(),
    )
    return None if answer.is_success else f"it answered {answer.status_code}"


def _mail(alert: Alert, channel: EmailChannel) -> str | None:
    seconds = channel.timeout.total_seconds()
    context = ssl.create_default_context()
    if channel.security == "tls":
        server: smtplib.SMTP = smtplib.SMTP_SSL(
            channel.host, channel.port, timeout=seconds, context=context
        )
    else:
        server = smtplib.SMTP(channel.host, channel.port, timeout=seconds)
    with server:
        if channel.security == "starttls":
            server.starttls(context=context)
        if channel.user and channel.password:
            server.login(channel.user, resolve_secret(channel.password))
        server.send_message(as_mail(alert, channel))
    return None
