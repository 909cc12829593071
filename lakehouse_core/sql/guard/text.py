"""What is refused by its characters: where an engine would read other tokens than we do.

A guard that reads a text differently from the engine guards nothing. Everything here is a place
where lexers are known to disagree, or where an engine changes the text before it reads it.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from lakehouse_core.sql.guard.records import RefusedError, Rule

if TYPE_CHECKING:
    from lakehouse_core.sql.dialect import SqlDialect
    from lakehouse_core.sql.lex import Lexed

# Spark puts settings and environment variables into `${…}` before it parses, also inside quotes.
_SUBSTITUTING = frozenset({"spark", "spark2", "databricks", "hive"})
# sqlglot takes a backslash for an escape there, the engine does not.
_BACKSLASH_DIFFERS = frozenset({"athena"})
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_UNICODE_NAME = re.compile(r"(?<!\w)[uU]&\"")
# Format characters, spaces, separators, private and unassigned ones: nobody sees them, and lexers
# differ on what they are.
_UNSEEN = frozenset({"Cf", "Zs", "Zl", "Zp", "Cc", "Co", "Cn"})


def refuse_raw(text: str, dialect: SqlDialect) -> None:
    """Look at what does not depend on tokens; cheap, and done for known texts, too.

    Raises:
        RefusedError: names what was found.
    """
    if _CONTROL.search(text):
        raise _refused("it holds a control character or half a character")
    if "${" in text and dialect.name in _SUBSTITUTING:
        raise _refused("${…} would be replaced by a setting or environment variable")
    if "/*!" in text:
        raise _refused("some systems run what stands in /*! … */; leave it out")
    if "\\'" in text and dialect.name in _BACKSLASH_DIFFERS:
        raise _refused("a backslash before a quote is ambiguous; write two quotes instead")


def refuse_ambiguous(lexed: Lexed, dialect: SqlDialect) -> None:
    """Look at comments and characters outside literals.

    Raises:
        RefusedError: names what was found.
    """
    text = lexed.text
    if "&" in text and _UNICODE_NAME.search(text):
        raise _refused('names written as U&"…" are not read; write the characters themselves')
    if "/*" in text or ("--" in text and "\\" in text):
        _refuse_comments(text, dialect)
    if not text.isascii():
        _refuse_unseen(lexed)


def _refuse_comments(text: str, dialect: SqlDialect) -> None:
    """Nested comments end at different places, and a backslash goes on in Spark."""
    for token in dialect.tokenize(text):
        for comment in token.comments:
            if "/*" in comment or "*/" in comment:
                raise _refused("a comment within a comment is ambiguous; leave it out")
            if comment.rstrip("\r").endswith("\\"):
                raise _refused("a comment that ends in a backslash is ambiguous; leave it out")


def _refuse_unseen(lexed: Lexed) -> None:
    spans = [(token.start, token.end) for token in lexed.literals]
    index = 0
    for position, character in enumerate(lexed.text):
        if character < "\x80" or unicodedata.category(character) not in _UNSEEN:
            continue
        while index < len(spans) and spans[index][1] < position:
            index += 1
        if index >= len(spans) or position < spans[index][0]:
            raise _refused(f"it holds the character U+{ord(character):04X} outside a literal")


def _refused(what: str) -> RefusedError:
    return RefusedError(Rule.TEXT, f"the text cannot be read for sure: {what}")
