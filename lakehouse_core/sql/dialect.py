"""A dialect as this room needs it: tokens, trees, and how it folds names."""

from __future__ import annotations

import difflib
import logging
import re
import threading
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, cast

from sqlglot.dialects.dialect import Dialect, Dialects, NormalizationStrategy
from sqlglot.tokenizer_core import TokenType

from lakehouse_core.domain.errors import LakehouseError, Terminal
from lakehouse_core.sql.mask import Masker

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.tokenizer_core import Token

    from lakehouse_core.sql.lex import Lexed
    from lakehouse_core.sql.tree import Tree

_LONGEST_KEPT = 64 * 1024  # characters
# Canonical alias names of templates; a real name of this form is quoted to stay apart from them.
_CANONICAL = re.compile(r"[tcwn][0-9]+\Z")
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*\Z")


class UnknownDialectError(Terminal, LakehouseError):
    """Raised when a dialect name is none of sqlglot's."""


class SqlDialect:
    """One dialect; cheap to keep, made once per name by `dialect_named`."""

    def __init__(self, name: str) -> None:
        # sqlglot logs the text of what it has no model for, and it may hold a secret.
        logging.getLogger("sqlglot").setLevel(logging.ERROR)
        self.name = name
        self.base = Dialect.get_or_raise(name or None)
        self._local = threading.local()
        strategy = self.base.normalization_strategy
        self._upper = strategy in (
            NormalizationStrategy.UPPERCASE,
            NormalizationStrategy.CASE_INSENSITIVE_UPPERCASE,
        )
        self._folds = strategy is not NormalizationStrategy.CASE_SENSITIVE
        self._folds_quoted = strategy in (
            NormalizationStrategy.CASE_INSENSITIVE,
            NormalizationStrategy.CASE_INSENSITIVE_UPPERCASE,
        )
        # Names come back again and again; a cache answers faster than a method.
        self.fold = lru_cache(maxsize=16_384)(self._fold)
        self.spell = lru_cache(maxsize=16_384)(self._spell)

    @cached_property
    def has_lateral_aliases(self) -> bool:
        """Whether a SELECT item may use the alias of an item to its left."""
        return self.name in {"spark", "databricks", "duckdb", "snowflake", "redshift", "clickhouse"}

    def puts_nulls_first(self, *, is_descending: bool) -> bool:
        """Whether NULLs come first in an ORDER BY that does not say where."""
        ordering = self.base.NULL_ORDERING
        return ordering == ("nulls_are_large" if is_descending else "nulls_are_small")

    @cached_property
    def _reserved(self) -> frozenset[str]:
        """Words that are no name unless quoted."""
        keywords = self.base.tokenizer_class.KEYWORDS
        names = self.base.parser_class.ID_VAR_TOKENS
        return frozenset(word for word, kind in keywords.items() if kind not in names)

    @cached_property
    def masker(self) -> Masker:
        """Makes the keys of the hot path."""
        return Masker(self)

    @cached_property
    def type_tokens(self) -> bytes:
        """For each kind of token 1 when it names a type."""
        return bytes(
            kind in self.base.parser_class.TYPE_TOKENS for kind in range(max(TokenType) + 1)
        )

    def tokenize(self, text: str) -> list[Token]:
        """Tokens of a text; sqlglot's TokenError when it has none."""
        tokenizer = getattr(self._local, "tokenizer", None)
        if tokenizer is None:  # costly to make, and not to be shared between threads
            tokenizer = self._local.tokenizer = self.base.tokenizer()
        return cast("list[Token]", tokenizer.tokenize(text))

    def parse(self, tokens: list[Token], text: str) -> list[exp.Expr | None]:
        """Trees of a list of tokens; sqlglot's ParseError when there are none."""
        return self.base.parser().parse(tokens, text)

    def remember(self, lexed: Lexed, tree: Tree) -> None:
        """Keep the last tree of this thread: whoever decides on a new text looks at it, too."""
        is_small = len(lexed.text) <= _LONGEST_KEPT
        self._local.parsed = (lexed, tree) if is_small else None

    def recall(self, text: str) -> tuple[Lexed, Tree] | None:
        """Tokens and tree of a text, if it was the last one; nobody changes them."""
        parsed: tuple[Lexed, Tree] | None = getattr(self._local, "parsed", None)
        return parsed if parsed is not None and parsed[0].text == text else None

    def _fold(self, name: str, quoted: bool) -> str:
        """The name as the engine compares it."""
        if not self._folds or (quoted and not self._folds_quoted):
            return name
        return name.upper() if self._upper else name.lower()

    def _spell(self, name: str, quoted: bool) -> str:
        """A name as templates show it: bare when an unquoted name folds to the same."""
        folded = self.fold(name, quoted)
        bare = folded.lower()
        same = self.fold(bare, False) == folded if self._folds else bare == folded
        is_taken = _CANONICAL.match(bare) or bare.upper() in self._reserved
        if same and _PLAIN.match(bare) and not is_taken:
            return bare
        return '"' + folded.replace('"', '""') + '"'


@lru_cache(maxsize=64)
def dialect_named(name: str) -> SqlDialect:
    """The dialect of a name.

    Raises:
        UnknownDialectError: names the nearest dialect there is.
    """
    folded = name.strip().lower()
    known = dialect_names()
    if folded not in known:
        near = difflib.get_close_matches(folded, known, n=1, cutoff=0.0)
        raise UnknownDialectError(f"unknown dialect {name!r}; the nearest known one is {near[0]!r}")
    return SqlDialect(folded)


@lru_cache(maxsize=1)
def neutral_dialect() -> SqlDialect:
    """The dialect of sqlglot itself, for texts of which only the layout can be evened out."""
    return SqlDialect("")


@lru_cache(maxsize=1)
def dialect_names() -> tuple[str, ...]:
    """Every dialect name, sqlglot's vocabulary."""
    return tuple(sorted(d.value for d in Dialects if d.value))
