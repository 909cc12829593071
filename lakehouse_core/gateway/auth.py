"""Who a client is: nobody asked, a password, or a bearer token.

A password's hash is slow on purpose, and clients send their password with every poll: one that was
right is remembered for a while, under a hash keyed with a secret of this process.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakehouse_core.domain.errors import ConfigError, LakehouseError, Terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from lakehouse_core.config.gateway import JwtConfig

_SCRYPT = {"n": 2**14, "r": 8, "p": 1}
_REMEMBER_SECONDS = 300.0
_MOST_REMEMBERED = 10_000


class NotAuthenticatedError(Terminal, LakehouseError):
    """Raised when a client did not prove who it is."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks."""

    user: str
    groups: tuple[str, ...] = ()
    role: str | None = None


@dataclass(frozen=True, slots=True)
class _User:
    hash: str
    groups: tuple[str, ...]
    role: str | None


class Authenticator:
    """Tells who a request comes from; without users and tokens it believes what it is told."""

    def __init__(
        self,
        users: Mapping[str, _User] | None = None,
        check_token: Callable[[str], Identity] | None = None,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._users = users
        self._check_token = check_token
        self._seconds = seconds
        self._key = os.urandom(32)
        self._known: dict[bytes, tuple[float, Identity]] = {}

    @property
    def asks(self) -> bool:
        """Whether clients must prove who they are."""
        return self._users is not None or self._check_token is not None

    def known(self, authorization: str, claimed: str) -> Identity | None:
        """Who it is, when no slow look is needed.

        Raises:
            NotAuthenticatedError: nobody said who asks.
        """
        if not self.asks:
            if not claimed:
                raise NotAuthenticatedError("Say who you are: set the user (X-Trino-User)")
            return Identity(claimed)
        if not authorization:
            raise NotAuthenticatedError("This gateway wants a password or a token")
        kept = self._known.get(self._digest(authorization))
        if kept is not None and kept[0] > self._seconds():
            return kept[1]
        return None

    async def verify(self, authorization: str) -> Identity:
        """Look closely.

        Raises:
            NotAuthenticatedError: the password or token is not right.
        """
        scheme, _, given = authorization.partition(" ")
        if scheme.lower() == "bearer" and self._check_token is not None:
            identity = self._check_token(given.strip())
            lifetime = 30.0  # a token may expire: it is looked at again soon
        elif scheme.lower() == "basic" and self._users is not None:
            identity = await asyncio.to_thread(self._check_password, given.strip())
            lifetime = _REMEMBER_SECONDS
        else:
            wanted = " or ".join(
                [
                    *(["a password"] if self._users else []),
                    *(["a token"] if self._check_token else []),
                ]
            )
            raise NotAuthenticatedError(f"This gateway wants {wanted}")
        if len(self._known) >= _MOST_REMEMBERED:
            self._known.clear()
        self._known[self._digest(authorization)] = (self._seconds() + lifetime, identity)
        return identity

    def _digest(self, authorization: str) -> bytes:
        return hmac.digest(self._key, authorization.encode(), "sha256")

    def _check_password(self, encoded: str) -> Identity:
        try:
            name, colon, password = base64.b64decode(encoded, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError) as error:
            raise NotAuthenticatedError("The Authorization header cannot be read") from error
        user = (self._users or {}).get(name)
        # An unknown name takes as long as a wrong password.
        is_right = verify_password(password, user.hash if user else _NOBODY)
        if not colon or user is None or not is_right:
            raise NotAuthenticatedError("User or password is wrong")
        return Identity(name, user.groups, user.role)


def hash_password(password: str, salt: bytes | None = None) -> str:
    """A password as the users file keeps it."""
    salt = salt or os.urandom(16)
    digest = hashlib.scrypt(password.encode(), salt=salt, **_SCRYPT)
    return f"scrypt${base64.b64encode(salt).decode()}${base64.b64encode(digest).decode()}"


def verify_password(password: str, kept: str) -> bool:
    """Whether a password is the one that was kept."""
    try:
        kind, salt, digest = kept.split("$")
        expected = base64.b64decode(digest, validate=True)
        found = hashlib.scrypt(
            password.encode(), salt=base64.b64decode(salt, validate=True), **_SCRYPT
        )
    except (ValueError, binascii.Error):
        return False
    return kind == "scrypt" and hmac.compare_digest(found, expected)


_NOBODY = hash_password("", b"nobody has this ")


def read_users(path: Path) -> dict[str, _User]:
    """The users file: `name:hash[:role[:group,group]]` per line.

    Raises:
        ConfigError: it cannot be read, or a line is wrong; names the line, never what is in it.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"gateway.sql.users: {path} cannot be read ({type(error).__name__})"
        ) from error
    users = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        name, _, rest = line.strip().partition(":")
        kept, _, rest = rest.partition(":")
        role, _, groups = rest.partition(":")
        if not name or not kept.startswith("scrypt$"):
            raise ConfigError(
                f"gateway.sql.users: line {number} of {path} is not name:hash[:role[:groups]]; "
                "see docs/gateway.md"
            )
        listed = tuple(group for group in groups.split(",") if group)
        users[name] = _User(kept, listed, role or None)
    return users


def token_check(jwt: JwtConfig, key: str) -> Callable[[str], Identity]:
    """What checks bearer tokens."""
    import jwt as pyjwt  # noqa: PLC0415 most gateways take no tokens

    def check(token: str) -> Identity:
        try:
            claims: dict[str, Any] = pyjwt.decode(
                token,
                key,
                algorithms=[jwt.algorithm],
                audience=jwt.audience,
                issuer=jwt.issuer,
                options={"require": ["exp", jwt.user_claim], "verify_aud": bool(jwt.audience)},
            )
        except pyjwt.PyJWTError as error:
            raise NotAuthenticatedError(f"The token is not valid: {error}") from error
        user = str(claims[jwt.user_claim])
        if not user.isprintable():
            raise NotAuthenticatedError(
                f"The token is not valid: its {jwt.user_claim} has control characters in it"
            )
        groups = claims.get(jwt.groups_claim)
        role = claims.get(jwt.role_claim)
        listed = tuple(str(group) for group in groups) if isinstance(groups, list) else ()
        return Identity(user, listed, role if isinstance(role, str) else None)

    return check
