"""What a session answers by itself: transactions, SET and SHOW, and what clears a session.

The lake's engines commit each statement by itself. BEGIN and COMMIT are taken, because every client
sends them, and change nothing but the state the client is told.
"""

from __future__ import annotations

import re
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from lakehouse_core.domain.errors import QueryFailedError
from lakehouse_core.sql.postgres.statements import words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

VERSION = "16.4"  # the PostgreSQL whose protocol and catalog clients may expect
IDLE, ACTIVE, BROKEN = b"I", b"T", b"E"

_REPORTED = (
    "server_version", "server_encoding", "client_encoding", "application_name", "DateStyle",
    "IntervalStyle", "TimeZone", "integer_datetimes", "standard_conforming_strings",
    "is_superuser", "session_authorization", "default_transaction_read_only", "in_hot_standby",
)  # fmt: skip
_DEFAULTS: Mapping[str, str] = {
    "server_version": VERSION,
    "server_version_num": "160004",
    "server_encoding": "UTF8",
    "client_encoding": "UTF8",
    "application_name": "",
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "integer_datetimes": "on",
    "standard_conforming_strings": "on",
    "is_superuser": "off",
    "session_authorization": "",
    "default_transaction_read_only": "off",
    "in_hot_standby": "off",
    "search_path": '"$user", public',
    "transaction_isolation": "read committed",
    "transaction_read_only": "off",
    "default_transaction_isolation": "read committed",
    "max_identifier_length": "63",
    "max_index_keys": "32",
    "extra_float_digits": "1",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "row_security": "on",
    "bytea_output": "hex",
    "lc_collate": "C",
    "lc_ctype": "C",
    "ssl": "off",
}
_CANONICAL = {name.lower(): name for name in _DEFAULTS}
_FIXED = frozenset({"server_version", "server_version_num", "server_encoding", "is_superuser",
                    "session_authorization", "integer_datetimes", "in_hot_standby"})  # fmt: skip
_DURATION = re.compile(r"(\d{1,12}(?:\.\d+)?)\s*(us|ms|s|min|h|d)?")
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0}
_UTF8 = frozenset({"utf8", "utf-8", "unicode"})
_UTC = frozenset({"utc", "gmt", "etc/utc", "default", "local", "0", "zulu"})


@dataclass(frozen=True, slots=True)
class Answer:
    """What a statement that no engine sees brings: a tag, perhaps rows, settings that changed."""

    tag: str
    rows: pa.Table | None = None
    changed: Mapping[str, str] = field(default_factory=dict)


def _options(text: str) -> dict[str, str]:
    """Settings of a connection's `options`: `-c name=value` and `--name=value`."""
    words = [re.sub(r"\\(.)", r"\1", word) for word in re.findall(r"(?:\\.|\S)+", text)]
    joined = re.sub(r"(^|\0)-c\0?", r"\1--", "\0".join(words))
    found = (word[2:].partition("=") for word in joined.split("\0") if word.startswith("--"))
    return {name.replace("-", "_"): value for name, equals, value in found if equals}


class Settings:
    """The settings and the transaction state of one session."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self.status = IDLE
        self._values = {**_DEFAULTS, "session_authorization": given.get("user", "")}
        self._at_start: dict[str, str] = {}
        for name, value in {**_options(given.get("options", "")), **given}.items():
            if name not in ("user", "database", "options", "replication"):
                self._set(name, value)
        self._at_start = dict(self._values)

    def copied(self) -> Settings:
        """The same settings, to see what statements would make of them."""
        found = copy(self)
        found._values = dict(self._values)
        return found

    def reported(self) -> dict[str, str]:
        """What clients are told at the start."""
        return {name: self._values[name] for name in _REPORTED}

    def get(self, name: str) -> str | None:
        """A setting; None when there is none of that name."""
        return self._values.get(_CANONICAL.get(name.lower(), name.lower()))

    @property
    def schema(self) -> str | None:
        """The first real schema of the search path."""
        for part in self._values["search_path"].split(","):
            name = part.strip().strip('"')
            if name and name not in ("$user", "public", "pg_catalog"):
                return name
        return None

    @property
    def timeout_seconds(self) -> float | None:
        """How long a statement may take; None: as long as it likes."""
        return _duration(self._values["statement_timeout"]) or None

    @property
    def custom(self) -> dict[str, str]:
        """Settings that are none of PostgreSQL's: what clients say to the router."""
        return {name: value for name, value in self._values.items() if name not in _DEFAULTS}

    def failed(self) -> None:
        """A statement failed: a transaction is broken until it ends."""
        if self.status == ACTIVE:
            self.status = BROKEN

    def is_verb(self, word: str) -> bool:
        """Whether statements that begin so are answered here."""
        return word.upper().rstrip(";") in _VERBS

    def is_question(self, word: str) -> bool:
        """Whether statements that begin so are answered here, and change nothing."""
        return _VERBS.get(word.upper().rstrip(";")) is Settings._show

    def answer(self, sql: str) -> Answer | None:
        """What a statement brings that no engine needs to see; None: it is none of these.

        Raises:
            QueryFailedError: it is one, and wrong.
        """
        words = words_of(sql)
        if not words:
            return None
        verb = words[0].upper()
        answering = _VERBS.get(verb)
        if answering is None:
            return None
        return answering(self, words)

    # --- statements

    def _begin(self, words: Sequence[str]) -> Answer | None:
        if words[0].upper() == "START" and [w.upper() for w in words[1:2]] != ["TRANSACTION"]:
            return None
        self.status = ACTIVE if self.status == IDLE else self.status
        return Answer("BEGIN")

    def _end(self, words: Sequence[str]) -> Answer:
        del words
        tag = "ROLLBACK" if self.status == BROKEN else "COMMIT"
        self.status = IDLE
        return Answer(tag)

    def _rollback(self, words: Sequence[str]) -> Answer:
        if "TO" in [word.upper() for word in words]:
            self.status = ACTIVE
        else:
            self.status = IDLE
        return Answer("ROLLBACK")

    def _note(self, words: Sequence[str]) -> Answer:
        return Answer(words[0].upper())

    def _deallocate(self, words: Sequence[str]) -> Answer:
        return Answer("DEALLOCATE ALL" if words[-1].upper() == "ALL" else "DEALLOCATE")

    def _discard(self, words: Sequence[str]) -> Answer:
        if words[-1].upper() == "ALL":
            self._values = dict(self._at_start)
        return Answer(f"DISCARD {words[-1].upper()}")

    def _reset(self, words: Sequence[str]) -> Answer:
        name = words[1] if len(words) > 1 else "ALL"
        if name.upper() == "ALL":
            self._values = dict(self._at_start)
            return Answer("RESET")
        key = _CANONICAL.get(name.lower(), name.lower())
        if key in self._at_start:
            self._values[key] = self._at_start[key]
        else:
            self._values.pop(key, None)
        return Answer("RESET", changed=self._report(key))

    def _assign(self, words: Sequence[str]) -> Answer:
        rest = list(words[1:])
        if rest and rest[0].upper() in ("SESSION", "LOCAL") and len(rest) > 1:
            rest.pop(0)
        first = rest[0].upper() if rest else ""
        if first in ("CHARACTERISTICS", "TRANSACTION", "CONSTRAINTS"):
            return Answer("SET")
        if first in ("ROLE", "AUTHORIZATION"):
            raise QueryFailedError(
                f"SET {first}: who you are is decided when you connect", code="42501"
            )
        if first == "TIME" and len(rest) > 2:
            rest = ["TimeZone", "TO", *rest[2:]]
        if first == "NAMES" and len(rest) > 1:
            rest = ["client_encoding", "TO", rest[1]]
        if len(rest) < 3 or rest[1].upper() not in ("TO", "="):
            raise QueryFailedError("SET wants a name, TO or =, and a value", code="42601")
        return Answer("SET", changed=self._report(self._set(rest[0], " ".join(rest[2:]))))

    def _show(self, words: Sequence[str]) -> Answer:
        name = " ".join(words[1:])
        if name.upper() == "ALL":
            names = sorted(self._values)
            columns = {
                "name": names,
                "setting": [self._values[one] for one in names],
                "description": [""] * len(names),
            }
            return Answer("SHOW", pa.table(columns))
        name = {
            "transaction isolation level": "transaction_isolation",
            "time zone": "TimeZone",
        }.get(name.lower(), name)
        found = self.get(name)
        if found is None:
            raise QueryFailedError(f'unrecognized configuration parameter "{name}"', code="42704")
        return Answer("SHOW", pa.table({_CANONICAL.get(name.lower(), name): [found]}))

    # --- values

    def _set(self, name: str, value: str) -> str:
        key = _CANONICAL.get(name.lower(), name.lower())
        if key in _FIXED:
            raise QueryFailedError(f'parameter "{key}" cannot be changed', code="55P02")
        if value.upper() == "DEFAULT":
            value = self._at_start.get(key, _DEFAULTS.get(key, ""))
        if key == "client_encoding" and value.lower() not in _UTF8:
            raise QueryFailedError(
                f"client_encoding {value}: this gateway speaks UTF8", code="22023"
            )
        if key == "statement_timeout" and _duration(value) is None:
            raise QueryFailedError(
                f'invalid value for parameter "statement_timeout": "{value}"; say 500, 30s or 5min',
                code="22023",
            )
        if key == "TimeZone" and value.lower() not in _UTC:
            # Times are told with their zone, in UTC; to follow another would change their text.
            value = "UTC"
        self._values[key] = "UTF8" if key == "client_encoding" else value
        return key

    def _report(self, key: str) -> dict[str, str]:
        return {key: self._values[key]} if key in _REPORTED else {}


def _duration(text: str) -> float | None:
    """Seconds of `500` (milliseconds), `30s` or `5min`; None: it is none of these."""
    found = _DURATION.fullmatch(text.strip().lower())
    return float(found[1]) * _UNITS[found[2] or "ms"] if found else None


_VERBS: Mapping[str, Callable[[Settings, Sequence[str]], Answer | None]] = {
    "BEGIN": Settings._begin,
    "START": Settings._begin,
    "COMMIT": Settings._end,
    "END": Settings._end,
    "ROLLBACK": Settings._rollback,
    "ABORT": Settings._rollback,
    "SAVEPOINT": Settings._note,
    "RELEASE": Settings._note,
    "LISTEN": Settings._note,
    "UNLISTEN": Settings._note,
    "DEALLOCATE": Settings._deallocate,
    "DISCARD": Settings._discard,
    "RESET": Settings._reset,
    "SET": Settings._assign,
    "SHOW": Settings._show,
}
