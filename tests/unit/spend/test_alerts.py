from __future__ import annotations

import json
import re
import socket
import threading
from datetime import timedelta
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr

from agents import budgets
from lakehouse_core.config import load_config
from lakehouse_core.config.finops import Budget, EmailChannel, FinOpsConfig, WebhookChannel
from lakehouse_core.finops.alerts import MOST_ATTEMPTS, Alert, Contributor, as_mail, deliver
from lakehouse_core.views.budgets import budget_statuses, list_alerts
from tests.unit.spend.conftest import NOW, clock, rules
from tests.unit.spend.ledger import HOUR, Ledger, Part

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakehouse_core.config.models import Config
    from lakehouse_core.store.owner import OwnerStore

DAY = timedelta(days=1)


class Receiver:
    """A webhook's other end on loopback."""

    def __init__(self) -> None:
        self.status = 200
        self.got: list[dict[str, Any]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                size = int(self.headers["Content-Length"])
                receiver.got.append(json.loads(self.rfile.read(size)))
                self.send_response(receiver.status)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook/secret-part"
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()


class Post:
    """An SMTP server that takes one letter."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.letter = ""
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        connection, _ = self._socket.accept()
        with connection, connection.makefile("rwb") as lines:

            def say(text: str) -> None:
                lines.write(f"{text}\r\n".encode())
                lines.flush()

            say("220 post")
            while line := lines.readline().decode().strip():
                if line.upper() == "DATA":
                    say("354 go on")
                    while (part := lines.readline().decode()) != ".\r\n":
                        self.letter += part
                say("221 bye" if line.upper() == "QUIT" else "250 ok")
                if line.upper() == "QUIT":
                    return

    def close(self) -> None:
        self._thread.join(10)
        self._socket.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.close()


@pytest.fixture
def hook(receiver: Receiver, tmp_path: Path) -> WebhookChannel:
    secret = tmp_path / "hook"
    secret.write_text(receiver.url, encoding="utf-8")
    return WebhookChannel(type="webhook", url=SecretStr(f"file:{secret}"))


def alert(**more: Any) -> Alert:
    values: dict[str, Any] = {
        "alert_id": "budget:all:2026-11-01:80%", "kind": "budget", "subject": "all",
        "scope": "all spend", "title": "Budget all: 80% of 100.00 USD spent",
        "body": "What: all spend.", "since": NOW, "raised_at": NOW, "amount": Decimal("82.5"),
        "expected": Decimal(100), "currency": "USD", "channels": ("chat",), "delivered": {},
        "who": (Contributor(dimension="user", name="ana", amount=Decimal(80)),),
    }  # fmt: skip
    return Alert(**values | more)


@pytest.mark.parametrize(
    "alert_id", ["anomaly:engine trino:2026-11-01", "anomaly:workload Ämter x:2026-11-01"]
)
def test_a_letter_has_an_id_that_no_name_cuts_short(alert_id: str) -> None:
    channel = EmailChannel(type="email", host="post", sender="a@b.c", to=("d@e.f",))
    mail = as_mail(alert(alert_id=alert_id, kind="anomaly"), channel)
    (line,) = [one for one in mail.as_string().splitlines() if one.startswith("Message-ID")]
    assert re.fullmatch(r"Message-ID: <anomaly\.[0-9a-f]{32}@lakehelm>", line)
    again = as_mail(alert(alert_id=alert_id, kind="anomaly"), channel)
    assert again["Message-ID"] == mail["Message-ID"]


def test_a_webhook_is_told_what_how_much_since_when_and_who(
    receiver: Receiver, hook: WebhookChannel
) -> None:
    sent = deliver(alert(), {"chat": hook}, NOW)
    assert sent.settled
    assert sent.delivered["chat"].startswith("sent ")
    (got,) = receiver.got
    assert got["amount"] == "82.5"
    assert got["since"].startswith("2026-11-16T12:30")
    assert got["contributors"] == [
        {"dimension": "user", "name": "ana", "amount": "80", "change": None}
    ]
    assert deliver(sent, {"chat": hook}, NOW).settled
    assert len(receiver.got) == 1


def test_a_channel_that_refuses_is_tried_again_later_and_given_up_in_the_end(
    receiver: Receiver, hook: WebhookChannel
) -> None:
    receiver.status = 500
    one = deliver(alert(), {"chat": hook}, NOW)
    assert (one.settled, one.delivered) == (False, {"chat": "failed: it answered 500"})
    assert one.next_try_at == NOW + timedelta(minutes=1)
    for _ in range(MOST_ATTEMPTS):
        one = deliver(one, {"chat": hook}, NOW)
    assert one.settled
    receiver.status = 200
    assert deliver(deliver(alert(), {}, NOW), {"chat": hook}, NOW).settled


def test_no_secret_of_an_address_is_in_what_is_kept(tmp_path: Path) -> None:
    secret = tmp_path / "hook"
    secret.write_text("http://127.0.0.1:9/very-secret", encoding="utf-8")
    hook = WebhookChannel(type="webhook", url=SecretStr(f"file:{secret}"))
    text = str(deliver(alert(), {"chat": hook}, NOW))
    assert "failed: ConnectError" in text
    assert "very-secret" not in text


def test_a_letter_has_subject_and_body() -> None:
    post = Post()
    channel = EmailChannel(
        type="email",
        host="127.0.0.1",
        port=post.port,
        security="none",
        sender="a@b.c",
        to=("d@e.f",),
    )
    sent = deliver(alert(body="What: all spend.\nWho: ana."), {"chat": channel}, NOW)
    post.close()
    assert sent.settled, sent.delivered
    assert "Subject: Budget all: 80% of 100.00 USD spent" in post.letter
    assert "Who: ana." in post.letter


# --- the agent ---------------------------------------------------------------------------------


def with_budgets(repository: Path, finops: FinOpsConfig) -> Config:
    config = load_config(repository / "config" / "lakehelm.yaml", {}).config
    return config.model_copy(update={"finops": finops})


def spend(store: OwnerStore, *days: str) -> None:
    """So much on each of the last days, today last."""
    ledger = Ledger()
    for number, cost in enumerate(reversed(days)):
        part = Part(cost=cost, user="ana", template="t1", source="bi")
        ledger.charge(NOW.replace(hour=3, minute=0) - number * DAY, "trino", part)
    ledger.write(store)


@pytest.mark.slow
def test_a_budget_is_told_once_for_each_share_it_passes(
    empty: OwnerStore, repository: Path, receiver: Receiver, hook: WebhookChannel
) -> None:
    budget = Budget(amount=Decimal(100), alert_on_forecast=False, notify=("chat",))
    config = with_budgets(
        repository, FinOpsConfig(budgets={"all": budget}, channels={"chat": hook})
    )
    spend(empty, *["5"] * 10, "35")
    budgets.run_once(empty, config, clock)
    budgets.run_once(empty, config, clock)
    told = [one for one in receiver.got if one["kind"] == "budget"]
    assert [one["id"] for one in told] == ["budget:all:2026-11-01:80%"]
    assert "How much: 85.00 USD of 100.00 USD (85.0 %)." in told[0]["text"]
    assert "ana" in told[0]["text"]
    spend(empty, *["5"] * 10, "60")
    budgets.run_once(empty, config, clock)
    told = [one for one in receiver.got if one["kind"] == "budget"]
    assert [one["id"] for one in told][1:] == ["budget:all:2026-11-01:100%"]
    kept = list_alerts(empty, clock)
    assert {one.alert_id for one in kept} >= {one["id"] for one in told}
    assert all(one.settled for one in kept)


@pytest.mark.slow
def test_a_forecast_above_the_budget_is_told_before_it_is_spent(
    empty: OwnerStore, repository: Path
) -> None:
    budget = Budget(amount=Decimal(200))
    config = with_budgets(repository, FinOpsConfig(budgets={"all": budget}))
    spend(empty, *["10"] * 20)
    (status,) = budget_statuses(empty, config.finops.budgets, rules(), clock)
    assert status.state == "warning"
    assert status.spent == 160
    budgets.run_once(empty, config, clock)
    (told,) = [one for one in list_alerts(empty, clock) if one.kind == "forecast"]
    assert told.amount == 300
    assert "mean of" in told.body


@pytest.mark.slow
def test_an_unusual_day_is_told_with_who_caused_it(empty: OwnerStore, repository: Path) -> None:
    config = with_budgets(repository, FinOpsConfig())
    spend(empty, *["5"] * 14, "50")
    budgets.run_once(empty, config, clock)
    told = {one.subject: one for one in list_alerts(empty, clock) if one.kind == "anomaly"}
    assert set(told) == {"all spend", "engine trino", "workload other"}
    trino = told["engine trino"]
    assert (trino.amount, trino.expected) == (Decimal(50), Decimal(5))
    assert trino.who[0].name == "ana / t1"
    assert trino.who[0].change == 45
    budgets.run_once(empty, config, clock)
    assert len(list_alerts(empty, clock)) == 3


def test_a_channel_that_does_not_answer_makes_the_run_partial(
    empty: OwnerStore, repository: Path, receiver: Receiver, hook: WebhookChannel
) -> None:
    receiver.status = 503
    budget = Budget(amount=Decimal(1), alert_on_forecast=False, notify=("chat",))
    config = with_budgets(
        repository, FinOpsConfig(budgets={"all": budget}, channels={"chat": hook})
    )
    spend(empty, "5")
    found = budgets.run_once(empty, config, clock)
    assert found.outcome == "partial"
    assert "503" in str(found.error)


@pytest.mark.slow
def test_hours_of_other_scopes_do_not_count(empty: OwnerStore, repository: Path) -> None:
    ledger = Ledger()
    ledger.charge(NOW.replace(minute=0) - HOUR, "trino", Part(cost="7", user="ana", source="bi"))
    ledger.charge(NOW.replace(minute=0) - HOUR, "spark", Part(cost="9", user="bo"))
    ledger.write(empty)
    finops = FinOpsConfig(
        budgets={
            "trino": Budget(amount=Decimal(100), engine="trino"),
            "bo": Budget(amount=Decimal(100), user="bo"),
            "bi": Budget(amount=Decimal(100), team="Analytics", period="day"),
        }
    )
    config = with_budgets(repository, finops)
    found = budget_statuses(empty, config.finops.budgets, rules(), clock)
    assert {one.name: one.spent for one in found} == {"trino": 7, "bo": 9, "bi": 7}


@pytest.mark.slow
def test_a_run_of_unusual_days_is_told_once(empty: OwnerStore, repository: Path) -> None:
    config = with_budgets(repository, FinOpsConfig())
    ledger = Ledger()
    for n in range(30, -6, -1):
        part = Part(cost="40" if n <= 0 else "10", user="ana", template="t1", source="bi")
        ledger.charge(NOW.replace(hour=3, minute=0) - n * DAY, "trino", part)
    ledger.write(empty)
    told = "SELECT alert_id FROM alert WHERE kind = 'anomaly' AND subject = 'all spend'"
    for days in range(5):
        budgets.run_once(empty, config, lambda days=days: NOW + days * DAY)  # type: ignore[misc]
        assert empty.read(told).num_rows == 1
