"""The part of MVEL that trino-gateway's rules are written in: read once, then run as closures.

condition = compile_expression('request.getHeader("X-Trino-Source") == "airflow"')
condition({"request": request})

Nothing of Python can be reached from a rule: names, classes and methods are those listed here and
in `mvel_values`. What is not known is an error when the rule is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NoReturn

from lakehouse_core.routing.mvel_values import (
    METHODS,
    STATICS,
    Optional,
    RuleFailedError,
    call,
    contains,
    equal,
    new_instance,
    order,
)

Run = Callable[[dict[str, Any]], Any]

_TOKEN = re.compile(
    r"""\s*(?:(?P<number>\d+(?:\.\d+)?)
    |(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<name>[A-Za-z_$][\w$]*)
    |(?P<operator>\|\||&&|==|!=|<=|>=|~=|[-!<>=+?:;,.(){}\[\]]))""",
    re.VERBOSE | re.DOTALL,
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_CONSTANTS = {"true": True, "false": False, "null": None, "nil": None}
_RELATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda a, b: order(a, b) < 0,
    "<=": lambda a, b: order(a, b) <= 0,
    ">": lambda a, b: order(a, b) > 0,
    ">=": lambda a, b: order(a, b) >= 0,
    "contains": contains,
    "in": lambda a, b: contains(b, a),
    "~=": lambda a, b: a is not None and re.fullmatch(str(b), str(a)) is not None,
}


class RuleSyntaxError(ValueError):
    """Raised when a rule has something in it that is not understood; says what and where."""


def compile_expression(text: str, known: frozenset[str]) -> Run:
    """An expression, or several statements of which the last one gives the value.

    Args:
        text: the source.
        known: names it may use.

    Raises:
        RuleSyntaxError: it is not in our part of the language.
    """
    return _Parser(text, known).program()


class _Parser:
    def __init__(self, text: str, known: frozenset[str]) -> None:
        self._tokens = _tokens(text)
        self._at = 0
        self._known = set(known)

    def program(self) -> Run:
        run = self._statements(until=None)
        if self._peek() != "":
            self._fail(f"did not expect {self._peek()!r}")
        return run

    # --- statements ---------------------------------------------------------------------------

    def _statements(self, until: str | None) -> Run:
        steps: list[Run] = []
        while self._peek() not in ("", until):
            steps.append(self._statement())
            while self._accept(";"):
                pass
        if len(steps) == 1:
            return steps[0]

        def run(names: dict[str, Any]) -> Any:
            value = None
            for step in steps:
                value = step(names)
            return value

        return run

    def _statement(self) -> Run:
        if self._accept("if"):
            return self._if()
        if self._accept("{"):
            inner = self._statements(until="}")
            self._expect("}")
            return inner
        kind, word = self._tokens[self._at]
        following = self._tokens[self._at + 1][1] if self._at + 1 < len(self._tokens) else ""
        if kind == "name" and following == "=":
            self._at += 2
            value = self._expression()
            self._known.add(word)
            return lambda names: names.__setitem__(word, value(names))
        return self._expression()

    def _if(self) -> Run:
        self._expect("(")
        test = self._expression()
        self._expect(")")
        then = self._statement()
        while self._peek() == ";" and self._peek(1) == "else":
            self._at += 1
        otherwise: Run = self._statement() if self._accept("else") else lambda _: None
        return lambda names: then(names) if _is_true(test(names)) else otherwise(names)

    # --- expressions, from what binds least to what binds most ----------------------------------

    def _expression(self) -> Run:
        test = self._either()
        if not self._accept("?"):
            return test
        then = self._expression()
        self._expect(":")
        otherwise = self._expression()
        return lambda names: then(names) if _is_true(test(names)) else otherwise(names)

    def _either(self) -> Run:
        parts = [self._both()]
        while self._accept("||") or self._accept("or"):
            parts.append(self._both())
        if len(parts) == 1:
            return parts[0]
        return lambda names: any(_is_true(part(names)) for part in parts)

    def _both(self) -> Run:
        parts = [self._equality()]
        while self._accept("&&") or self._accept("and"):
            parts.append(self._equality())
        if len(parts) == 1:
            return parts[0]
        return lambda names: all(_is_true(part(names)) for part in parts)

    def _equality(self) -> Run:
        left = self._relation()
        while self._peek() in ("==", "!="):
            is_equal = self._next() == "=="
            left = _equality(left, self._relation(), is_equal=is_equal)
        return left

    def _relation(self) -> Run:
        left = self._sum()
        while self._peek() in _RELATIONS:
            left = _relation(_RELATIONS[self._next()], left, self._sum())
        return left

    def _sum(self) -> Run:
        left = self._unary()
        while self._accept("+"):
            left = _sum(left, self._unary())
        return left

    def _unary(self) -> Run:
        if self._accept("!"):
            inner = self._unary()
            return lambda names: not _is_true(inner(names))
        if self._accept("-"):
            number = self._unary()
            return lambda names: -number(names)
        return self._postfix()

    def _postfix(self) -> Run:
        value = self._primary()
        while True:
            if self._accept("."):
                name = self._name()
                if name not in METHODS:
                    self._fail(f"there is no method {name} here")
                arguments = self._arguments() if self._peek() == "(" else []
                value = _call(value, name, arguments)
            elif self._accept("["):
                index = self._expression()
                self._expect("]")
                value = _call(value, "get", [index])
            else:
                return value

    def _primary(self) -> Run:
        kind, word = self._tokens[self._at]
        if kind == "string":
            self._at += 1
            return _constant(_unquoted(word))
        if kind == "number":
            self._at += 1
            return _constant(float(word) if "." in word else int(word))
        if self._accept("("):
            inner = self._expression()
            self._expect(")")
            return inner
        if self._accept("["):
            items = self._list("]")
            return lambda names: [item(names) for item in items]
        if kind != "name":
            self._fail(f"did not expect {word!r}" if word else "ends too early")
        return self._named()

    def _named(self) -> Run:
        word = self._next()
        if word in _CONSTANTS:
            return _constant(_CONSTANTS[word])
        if word == "new":
            return self._new()
        if word in self._known:
            return lambda names: names.get(word)
        path = word
        while path not in STATICS and self._accept("."):
            path = f"{path}.{self._name()}"
        path = path.removeprefix("java.util.").removeprefix("java.lang.")
        if path not in STATICS:
            self._fail(f"{path} is not known here")
        static = STATICS[path]
        if not callable(static):
            return _constant(static)
        arguments = self._arguments()
        return lambda names: static(*(argument(names) for argument in arguments))

    def _new(self) -> Run:
        path = self._name()
        while self._accept("."):
            path = self._name()
        if self._peek() == "<":
            self._fail("MVEL has no type parameters: write new HashSet()")
        arguments = self._arguments()
        try:
            new_instance(path, [])
        except RuleFailedError as error:
            self._fail(str(error))
        return lambda names: new_instance(path, [argument(names) for argument in arguments])

    def _arguments(self) -> list[Run]:
        self._expect("(")
        return self._list(")")

    def _list(self, end: str) -> list[Run]:
        items: list[Run] = []
        while not self._accept(end):
            if items:
                self._expect(",")
            items.append(self._expression())
        return items

    # --- tokens -------------------------------------------------------------------------------

    def _peek(self, ahead: int = 0) -> str:
        at = self._at + ahead
        kind, word = self._tokens[at] if at < len(self._tokens) else ("end", "")
        return "" if kind == "string" else word

    def _next(self) -> str:
        word = self._tokens[self._at][1]
        self._at += 1
        return word

    def _accept(self, word: str) -> bool:
        if self._peek() != word:
            return False
        self._at += 1
        return True

    def _expect(self, word: str) -> None:
        if not self._accept(word):
            found = self._tokens[self._at][1]
            self._fail(f"expected {word!r}" + (f" before {found!r}" if found else " at the end"))

    def _name(self) -> str:
        kind, word = self._tokens[self._at]
        if kind != "name":
            self._fail(f"expected a name before {word!r}")
        self._at += 1
        return word

    def _fail(self, message: str) -> NoReturn:
        raise RuleSyntaxError(message)


def _tokens(text: str) -> list[tuple[str, str]]:
    source = text.rstrip()
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(source):
        comment = _COMMENT.match(source, at)
        if comment:
            at = comment.end()
            continue
        match = _TOKEN.match(source, at)
        if match is None or match.lastgroup is None:
            rest = source[at:].lstrip()
            if not rest or _COMMENT.match(rest):
                at = len(source) - len(rest)
                continue
            raise RuleSyntaxError(f"{rest[:20]!r} is not understood")
        found.append((match.lastgroup, match[match.lastgroup]))
        at = match.end()
    return [*found, ("end", "")]


def _unquoted(word: str) -> str:
    return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), word[1:-1], flags=re.DOTALL)


def _constant(value: Any) -> Run:
    return lambda _: value


def _equality(left: Run, right: Run, *, is_equal: bool) -> Run:
    return lambda names: equal(left(names), right(names)) == is_equal


def _relation(compare: Callable[[Any, Any], bool], left: Run, right: Run) -> Run:
    return lambda names: compare(left(names), right(names))


def _sum(left: Run, right: Run) -> Run:
    def add(names: dict[str, Any]) -> Any:
        a, b = left(names), right(names)
        return a + b if isinstance(a, int | float) and isinstance(b, int | float) else f"{a}{b}"

    return add


def _call(target: Run, name: str, arguments: list[Run]) -> Run:
    return lambda names: call(target(names), name, [argument(names) for argument in arguments])


def _is_true(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    said = "an Optional" if isinstance(value, Optional) else repr(value)
    raise RuleFailedError(f"a condition gave {said}, not true or false")
