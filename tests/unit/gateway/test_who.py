"""The router over the admin port: this machine asks freely, others say who they are."""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from lakehouse_core.gateway.auth import Authenticator, hash_password, read_users
from lakehouse_core.gateway.who import AskWho

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.requests import Request


def ask(auth: Authenticator, path: str, peer: str, **headers: str) -> int:
    async def answer(_: Request) -> Response:
        return PlainTextResponse("told")

    async def send() -> int:
        routes = [Route("/v1/route/rules", answer), Route("/livez", answer)]
        app = Starlette(routes=routes, middleware=[Middleware(AskWho, auth=auth)])
        transport = httpx.ASGITransport(app, client=(peer, 50_000))
        async with httpx.AsyncClient(transport=transport, base_url="http://10.0.0.1") as client:
            return (await client.get(path, headers=headers)).status_code

    return asyncio.run(send())


@pytest.fixture
def auth(tmp_path: Path) -> Authenticator:
    users = tmp_path / "users"
    users.write_text(f"ana:{hash_password('right')}\n")
    return Authenticator(read_users(users))


def basic(password: str) -> str:
    return f"Basic {base64.b64encode(f'ana:{password}'.encode()).decode()}"


@pytest.mark.parametrize("peer", ["127.0.0.1", "::1", "10.0.0.1"])
def test_this_machine_is_not_asked(auth: Authenticator, peer: str) -> None:
    assert ask(auth, "/v1/route/rules", peer) == 200
    assert ask(Authenticator(), "/v1/route/rules", peer) == 200


def test_others_say_who_they_are(auth: Authenticator) -> None:
    rules = "/v1/route/rules"
    assert ask(auth, rules, "10.0.0.2") == 401
    assert ask(auth, rules, "10.0.0.2", authorization=basic("wrong")) == 401
    assert ask(auth, rules, "10.0.0.2", authorization=basic("right")) == 200
    assert ask(Authenticator(), rules, "10.0.0.2", authorization=basic("right")) == 401
    assert ask(auth, "/livez", "10.0.0.2") == 200
