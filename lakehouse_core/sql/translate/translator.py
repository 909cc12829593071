"""Parse, adapt names, say the same in the target's words, and tell how sure that is."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import ErrorLevel, exp
from sqlglot.errors import SqlglotError

from lakehouse_core.domain.text import well_formed
from lakehouse_core.sql import limits
from lakehouse_core.sql.analysis import PARSER_FAILURES
from lakehouse_core.sql.cache import Cache
from lakehouse_core.sql.dialect import SqlDialect, UnknownDialectError, dialect_named
from lakehouse_core.sql.kind import is_statement
from lakehouse_core.sql.lex import lex
from lakehouse_core.sql.translate.doubts import Pair, doubts
from lakehouse_core.sql.translate.hooks import HookError, on_text, on_tree
from lakehouse_core.sql.translate.names import adapt_names, relative_renames
from lakehouse_core.sql.translate.numbers import Kinds
from lakehouse_core.sql.translate.records import Outcome, Setting, Translation

_PLAIN = Setting()
_MOST_REASONS = 3
_EXPLAIN = "EXPLAIN"
# Words that ask for the plan as text, which is what every engine gives without them.
_EXPLAINED_ALIKE = frozenset(
    {_EXPLAIN, "(", ")", ",", "TYPE", "LOGICAL", "DISTRIBUTED", "FORMAT", "TEXT"}
)


class _FailedError(Exception):
    """Raised when there is no translation; the message is the reason."""


def translate(sql: str, source: str, target: str, setting: Setting = _PLAIN) -> Translation:
    """A text in another dialect; never raises on account of the text or the dialects."""
    try:
        return _translated(sql, dialect_named(source), dialect_named(target), setting)
    except (UnknownDialectError, HookError, _FailedError) as error:
        return Translation(sql, Outcome.FAILED, str(error))
    except PARSER_FAILURES as error:
        reason = f"the parser failed with {type(error).__name__}"
        return Translation(sql, Outcome.FAILED, reason)


class Translator:
    """Translates under fixed settings and remembers; one text at a time, by its exact characters.

    Literals are translated, too (dates, escapes, formats), so a translation cannot be kept for a
    text without its literals.
    """

    def __init__(self, setting: Setting = _PLAIN, cached: int = 2_000) -> None:
        self._setting = setting
        self._known: Cache[tuple[object, ...], Translation] = Cache(cached)

    def translate(
        self,
        sql: str,
        source: str,
        target: str,
        *,
        catalog: str | None = None,
        schema: str | None = None,
    ) -> Translation:
        """See `translate`; catalog and schema of the session complete the names of tables."""
        key = (sql, source, target, catalog, schema)
        known = self._known.get(key)
        if known is None:
            known = translate(sql, source, target, _in_session(self._setting, catalog, schema))
            if len(sql) <= limits.MAX_CHARACTERS // 100:
                self._known.put(key, known)
        return known


def _in_session(setting: Setting, catalog: str | None, schema: str | None) -> Setting:
    if catalog is None and schema is None:
        return setting
    return Setting(
        mode=setting.mode,
        catalogs=setting.catalogs,
        catalog=catalog,
        schema=schema,
        types=setting.types,
        hooks=setting.hooks,
    )


def _translated(sql: str, source: SqlDialect, target: SqlDialect, setting: Setting) -> Translation:
    is_same = source.name == target.name
    has_tree_hooks = any(hook.form == "tree" for hook in setting.hooks)
    if is_same and not has_tree_hooks and not setting.catalogs:
        text = on_text(setting.hooks, sql, source.name, target.name)
        outcome = Outcome.IDENTICAL if text == sql else Outcome.TRANSLATED
        return Translation(text, outcome)
    head, inner = _explained(sql, source, is_same=is_same)
    found = _said(inner, source, target, setting)
    return replace(found, sql=head + found.sql) if head else found


def _explained(sql: str, dialect: SqlDialect, *, is_same: bool) -> tuple[str, str]:
    """What stands before the statement that is explained, and that statement; else no head.

    Raises:
        _FailedError: it has options that others do not have, or have otherwise.
    """
    if sql.lstrip()[: len(_EXPLAIN)].upper() != _EXPLAIN or len(sql) > limits.MAX_CHARACTERS:
        return "", sql
    try:
        lexed = lex(sql, dialect)
    except SqlglotError:
        return "", sql  # looked at again below
    options, rest = lexed.tokens[: lexed.explained], lexed.tokens[lexed.explained :]
    if not options or not rest:
        return "", sql
    start = rest[0].start
    if is_same:
        return sql[:start], sql[start:]
    unknown = {option.text.upper() for option in options} - _EXPLAINED_ALIKE
    if unknown:
        raise _FailedError(f"EXPLAIN with {min(unknown)[:40]} cannot be translated")
    return f"{_EXPLAIN} ", sql[start:]


def _said(sql: str, source: SqlDialect, target: SqlDialect, setting: Setting) -> Translation:
    is_same = source.name == target.name
    has_tree_hooks = any(hook.form == "tree" for hook in setting.hooks)
    root = _parsed(sql, source)
    before = root.copy() if has_tree_hooks or setting.hooks else root
    root = on_tree(setting.hooks, root, source.name, target.name)
    is_renamed = adapt_names(root, source, setting)
    if is_same and not is_renamed and root == before:
        text, reasons = sql, []
    else:
        relative_renames(root, target)
        reasons = doubts(root, Pair(source.name, target.name, Kinds(setting.types)))
        text = _written(root, target, setting, reasons)
    text = on_text(setting.hooks, text, source.name, target.name)
    if text == sql and is_same:
        return Translation(text, Outcome.IDENTICAL)
    _refuse_unreadable(text, target)
    if reasons:
        return Translation(text, Outcome.DOUBTFUL, "; ".join(reasons[:_MOST_REASONS]))
    return Translation(text, Outcome.TRANSLATED)


def _parsed(sql: str, dialect: SqlDialect) -> exp.Expr:
    """The tree of one statement.

    Raises:
        _FailedError: there is none.
    """
    if len(sql) > limits.MAX_CHARACTERS or well_formed(sql) != sql:
        raise _FailedError("the text is too long or holds half a character")
    try:
        lexed = lex(sql, dialect)
        if lexed.statements != 1:
            raise _FailedError(f"one statement at a time: found {lexed.statements}")
        refusal = limits.refusal(lexed, dialect)
        if refusal is not None:
            raise _FailedError(refusal)
        if lexed.is_command or lexed.explained:
            raise _FailedError(f"{lexed.tokens[0].text.upper()[:40]} cannot be translated")
        roots = [tree for tree in dialect.parse(dialect.tokenize(sql), sql) if tree is not None]
    except SqlglotError as error:
        raise _FailedError(f"the text is not {dialect.name}: it cannot be parsed") from error
    if len(roots) != 1 or isinstance(roots[0], exp.Command) or not is_statement(roots[0]):
        raise _FailedError("sqlglot has no model for this statement")
    return roots[0]


def _written(root: exp.Expr, target: SqlDialect, setting: Setting, reasons: list[str]) -> str:
    """The text of a tree; in best effort what the target cannot say becomes a reason.

    Raises:
        _FailedError: strict, and the target cannot say it.
    """
    try:
        return root.sql(dialect=target.base, unsupported_level=ErrorLevel.RAISE)
    except SqlglotError as error:
        said = " ".join(str(error).split())[:200]
        if setting.mode == "strict":
            raise _FailedError(f"{target.name} cannot say it: {said}") from error
        reasons.append(f"{target.name} cannot say all of it: {said}")
        return root.sql(dialect=target.base, unsupported_level=ErrorLevel.IGNORE)


def _refuse_unreadable(text: str, target: SqlDialect) -> None:
    try:
        roots = target.parse(target.tokenize(text), text)
    except SqlglotError as error:
        raise _FailedError(f"the translated text is not {target.name}") from error
    if len(roots) != 1 or roots[0] is None or isinstance(roots[0], exp.Command):
        raise _FailedError(f"the translated text is not one statement of {target.name}")
