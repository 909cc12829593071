"""Who a client is: passwords, tokens, and where nobody is asked."""

from __future__ import annotations

import asyncio
import base64
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import jwt
import pytest
from pydantic import SecretStr, ValidationError

from lakehouse_core.config.gateway import GatewayConfig, JwtConfig, SqlConfig
from lakehouse_core.domain.errors import ConfigError
from lakehouse_core.gateway.auth import (
    Authenticator,
    Identity,
    NotAuthenticatedError,
    hash_password,
    read_users,
    token_check,
)

if TYPE_CHECKING:
    from pathlib import Path

KEY = "a-shared-secret-of-thirty-two-bytes!"


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.fixture
def users(tmp_path: Path) -> Path:
    path = tmp_path / "users"
    path.write_text(f"# who may\nana:{hash_password('s3cret')}:analyst:bi,ops\n")
    return path


def test_a_right_password_is_remembered_and_a_wrong_one_refused(users: Path) -> None:
    now = [0.0]
    auth = Authenticator(read_users(users), seconds=lambda: now[0])
    right = basic("ana", "s3cret")
    assert auth.known(right, "somebody else") is None
    identity = asyncio.run(auth.verify(right))
    assert identity == Identity("ana", ("bi", "ops"), "analyst")
    assert auth.known(right, "") == identity
    now[0] = 301.0
    assert auth.known(right, "") is None
    for wrong in (basic("ana", "x"), basic("eve", "s3cret"), "Basic ???", "Bearer x"):
        with pytest.raises(NotAuthenticatedError) as caught:
            asyncio.run(auth.verify(wrong))
        assert "s3cret" not in str(caught.value)
    with pytest.raises(NotAuthenticatedError):
        auth.known("", "ana")


def test_tokens_are_checked(users: Path) -> None:
    del users
    config = JwtConfig(key=SecretStr("env:X"), algorithm="HS256", audience="lakehelm")
    auth = Authenticator(None, token_check(config, KEY))
    soon = datetime.now(UTC) + timedelta(minutes=1)
    claims = {"sub": "ana", "aud": "lakehelm", "exp": soon, "groups": ["bi"], "role": "analyst"}
    token = jwt.encode(claims, KEY, "HS256")
    assert asyncio.run(auth.verify(f"Bearer {token}")) == Identity("ana", ("bi",), "analyst")
    past = datetime.now(UTC) - timedelta(minutes=1)
    for bad in (
        jwt.encode({**claims, "exp": past}, KEY, "HS256"),
        jwt.encode({**claims, "aud": "other"}, KEY, "HS256"),
        jwt.encode(claims, "another-secret-of-thirty-two-bytes!!", "HS256"),
        jwt.encode({"aud": "lakehelm", "exp": soon}, KEY, "HS256"),
        jwt.encode({**claims, "sub": "ana\r\nX-Trino-User: root"}, KEY, "HS256"),
        "x.y.z",
    ):
        with pytest.raises(NotAuthenticatedError):
            asyncio.run(auth.verify(f"Bearer {bad}"))


def test_without_users_the_client_is_believed() -> None:
    assert Authenticator().known("", "ana") == Identity("ana")
    with pytest.raises(NotAuthenticatedError, match="X-Trino-User"):
        Authenticator().known("", "")


def test_a_line_that_is_no_user_is_named_but_not_quoted(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_text("ana:plain-password\n")
    with pytest.raises(ConfigError, match="line 1") as caught:
        read_users(path)
    assert "plain-password" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"host": "0.0.0.0"}, "nobody is asked"),  # noqa: S104
        ({"host": "10.1.2.3"}, "nobody is asked"),
        ({"host": "0.0.0.0", "users": "u"}, "in the clear"),  # noqa: S104
        ({"tls_certificate": "c"}, "go together"),
    ],
)
def test_a_port_that_others_reach_asks_who_they_are(given: dict[str, str], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        SqlConfig(**given)
    assert SqlConfig(host="::1").host == "::1"
    assert SqlConfig(host="0.0.0.0", users="u", behind_tls_proxy=True).asks_who  # noqa: S104


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3", "gateway.example.org"])  # noqa: S104
def test_an_admin_port_that_others_reach_asks_who_they_are(host: str) -> None:
    with pytest.raises(ValidationError, match="nobody is asked who he is"):
        GatewayConfig(host=host)
    known = {"users": "u", "behind_tls_proxy": True}
    assert GatewayConfig.model_validate({"host": host, "sql": known}).sql.asks_who
    without = GatewayConfig.model_validate({"host": host, "sql": {"enabled": False}})
    assert without.host == host, "there is no router to ask"
