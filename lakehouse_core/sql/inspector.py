"""Fingerprint and usage at two speeds: what is known is looked up, what is new is parsed.

Hot path: the text without its literals and comments is the key (`mask`). Under it lies which
literals are part of the template, and per value of those the fingerprint. An entry is written only
when the scan and sqlglot's tokens found the same literals. Usage is worked out once per template.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from lakehouse_core.sql.analysis import Analysis, analyse, failed
from lakehouse_core.sql.cache import Cache
from lakehouse_core.sql.dialect import (
    SqlDialect,
    UnknownDialectError,
    dialect_named,
    neutral_dialect,
)
from lakehouse_core.sql.mask import Mask, shorten_lists
from lakehouse_core.sql.records import ColumnUse, Fingerprint, Inspection, UnparsedReason
from lakehouse_core.sql.schema import Schema
from lakehouse_core.sql.tree import interval_form
from lakehouse_core.sql.usage import Defaults, usage

if TYPE_CHECKING:
    from collections.abc import Iterable

Columns = Schema | Mapping[str, "Iterable[str]"]

DEFAULT_CACHED = 20_000
_LONGEST_KEY = 16 * 1024  # characters; what is longer is parsed again
_MOST_VALUES = 100  # of literals with meaning, per key


@dataclass(slots=True)
class _Entry:
    """What is known under a key.

    Attributes:
        kept: numbers of the literals that are part of the template; True: as an interval.
        known: values of those literals → fingerprint.
    """

    kept: tuple[tuple[int, bool], ...]
    known: dict[tuple[str, ...], Fingerprint] = field(default_factory=dict)


class Inspector:
    """Reads SQL and remembers what it read; one per process is enough."""

    def __init__(self, cached: int = DEFAULT_CACHED) -> None:
        # sqlglot warns of every command it has no model for; the kind of the statement says so.
        logging.getLogger("sqlglot").setLevel(logging.ERROR)
        self._entries: Cache[tuple[str, str], _Entry] = Cache(cached)
        self._usage: Cache[tuple[object, ...], Inspection] = Cache(cached)

    def fingerprint(self, sql: str, dialect: str) -> Fingerprint:
        """The template of a statement; never raises on account of the text or the dialect."""
        try:
            language = dialect_named(dialect)
        except UnknownDialectError as error:
            return _of_unknown_dialect(sql, error)
        key = language.masker.full_key(sql)
        return self._known(sql, key, language) or self._analyse(sql, key, language).fingerprint

    def inspect(
        self,
        sql: str,
        dialect: str,
        *,
        default_catalog: str | None = None,
        default_namespace: tuple[str, ...] = (),
        schema: Columns | None = None,
        literals: bool = False,
    ) -> Inspection:
        """Template, tables and columns of a statement; never raises, as `fingerprint`.

        Args:
            sql: one statement.
            dialect: sqlglot's name of its dialect.
            default_catalog: completes table names that lack their catalog.
            default_namespace: completes table names that lack their namespace.
            schema: table → columns, as far as known; decides what the text leaves open.
            literals: whether the predicates with their values are wanted, too.
        """
        try:
            language = dialect_named(dialect)
        except UnknownDialectError as error:
            return _inspection(_of_unknown_dialect(sql, error))
        columns = schema if schema is None or isinstance(schema, Schema) else Schema(schema)
        defaults = Defaults(default_catalog, tuple(default_namespace), columns)
        key = language.masker.full_key(sql)
        fingerprint = self._known(sql, key, language)
        if fingerprint is not None:
            remembered = self._usage.get(_usage_key(fingerprint, language, defaults))
            if remembered is not None:
                return remembered
        return self._used(self._analyse(sql, key, language), language, defaults)

    def _used(self, analysis: Analysis, dialect: SqlDialect, defaults: Defaults) -> Inspection:
        """The inspection of a text whose usage is not known yet."""
        fingerprint = analysis.fingerprint
        if fingerprint.error is not None:
            return _inspection(fingerprint)
        key = _usage_key(fingerprint, dialect, defaults)
        inspection = self._usage.get(key)
        if inspection is None:
            inspection = _inspection(fingerprint, analysis, dialect, defaults)
            self._usage.put(key, inspection)
        return inspection

    # --- the hot path ------------------------------------------------------------------------

    def _known(self, sql: str, full_key: str | None, dialect: SqlDialect) -> Fingerprint | None:
        if full_key is None:
            return None
        entry = self._entries.get((dialect.name, shorten_lists(full_key)))
        if entry is None:
            return None
        if not entry.kept:
            return entry.known.get(())
        # Literals are numbered as they stand in the text, so lists count in full.
        entry = self._entries.get((dialect.name, full_key))
        if entry is None:
            return None
        return entry.known.get(_values(entry.kept, dialect.masker.mask(sql, full_key).literals))

    def _analyse(self, sql: str, full_key: str | None, dialect: SqlDialect) -> Analysis:
        analysis = analyse(sql, dialect)
        if full_key is not None and analysis.fingerprint.error is None:
            mask = dialect.masker.mask(sql, full_key)
            # Agreement on where literals end makes the key stand for these tokens.
            if mask.ends == analysis.ends:
                self._remember(mask, analysis, dialect)
        return analysis

    def _remember(self, mask: Mask, analysis: Analysis, dialect: SqlDialect) -> None:
        key = shorten_lists(mask.full_key)
        keys = (key, mask.full_key) if analysis.kept else (key,)
        if len(keys[-1]) > _LONGEST_KEY:
            return
        values = _values(analysis.kept, mask.literals)
        for each in keys:
            entry = self._entries.get((dialect.name, each))
            if entry is None or entry.kept != analysis.kept or len(entry.known) >= _MOST_VALUES:
                entry = _Entry(analysis.kept)
                self._entries.put((dialect.name, each), entry)
            entry.known[values] = analysis.fingerprint


def _of_unknown_dialect(sql: str, error: UnknownDialectError) -> Fingerprint:
    """Without its dialect a text has no sure tokens; sqlglot's own dialect evens it out."""
    template = analyse(sql, neutral_dialect()).fingerprint.template
    return failed(template, str(error), UnparsedReason.UNKNOWN_DIALECT)


@lru_cache(maxsize=1)
def default_inspector() -> Inspector:
    """The inspector that `inspect` and `fingerprint` share within a process."""
    return Inspector()


def _values(kept: tuple[tuple[int, bool], ...], literals: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(
        interval_form(literals[number]) if is_interval else literals[number]
        for number, is_interval in kept
    )


def _usage_key(
    fingerprint: Fingerprint, dialect: SqlDialect, defaults: Defaults
) -> tuple[object, ...]:
    return (
        fingerprint.template_id,
        dialect.name,
        defaults.catalog,
        defaults.namespace,
        defaults.schema.key if defaults.schema else None,
    )


def _inspection(
    fingerprint: Fingerprint,
    analysis: Analysis | None = None,
    dialect: SqlDialect | None = None,
    defaults: Defaults | None = None,
) -> Inspection:
    tables: tuple[str, ...] = ()
    columns: tuple[ColumnUse, ...] = ()
    if analysis is not None and analysis.bound is not None and dialect and defaults is not None:
        tables, columns = usage(analysis.bound, dialect, defaults)
    return Inspection(
        fingerprint.template_id,
        fingerprint.template,
        fingerprint.kind,
        tables,
        columns,
        fingerprint.error,
        fingerprint.reason,
    )
