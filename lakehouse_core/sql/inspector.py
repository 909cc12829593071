"""Fingerprint and usage at two speeds: what is known is looked up, what is new is parsed.

Hot path: the text without its literals and comments is the key (`mask`). Under it lies which
literals are part of the template, and per value of those the fingerprint. An entry is written only
when the scan and sqlglot's tokens found the same literals. Usage is worked out once per template;
predicates know the place of their values in the key, so the values of a known text need no parse.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from lakehouse_core.domain.table import join_name
from lakehouse_core.sql.analysis import Analysis, analyse, failed
from lakehouse_core.sql.cache import Cache
from lakehouse_core.sql.dialect import (
    SqlDialect,
    UnknownDialectError,
    dialect_named,
    neutral_dialect,
)
from lakehouse_core.sql.mask import Mask, shorten_lists
from lakehouse_core.sql.predicate import evaluate, shapes_of
from lakehouse_core.sql.records import Fingerprint, Inspection, UnparsedReason
from lakehouse_core.sql.scanning import evaluate_scans, scan_shapes
from lakehouse_core.sql.schema import Schema
from lakehouse_core.sql.shape import (
    StatementShape,
    TemplateShape,
    literal_numbers,
    template_shape,
)
from lakehouse_core.sql.slots import Slots, as_shortened, as_written, raw_of, shortened
from lakehouse_core.sql.tree import interval_form
from lakehouse_core.sql.usage import Defaults, Usage

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from lakehouse_core.sql.condition import TableScan
    from lakehouse_core.sql.lex import Lexed
    from lakehouse_core.sql.predicate import Shape
    from lakehouse_core.sql.records import Predicate
    from lakehouse_core.sql.scanning import ScanShape
    from lakehouse_core.sql.slots import Numbering

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


@dataclass(frozen=True, slots=True)
class _Keyed:
    """A text that was found under its key: a decision asks for the same one several times."""

    sql: str
    dialect: SqlDialect
    full_key: str
    known: tuple[Fingerprint, str]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is asked of a text."""

    dialect: SqlDialect
    defaults: Defaults
    literals: bool

    def key(self, fingerprint: Fingerprint) -> tuple[object, ...]:
        """What the usage of a template depends on."""
        schema = self.defaults.schema
        return (
            fingerprint.template_id,
            self.dialect.name,
            self.defaults.catalog,
            self.defaults.namespace,
            schema.key if schema else None,
        )


class Inspector:
    """Reads SQL and remembers what it read; one per process is enough."""

    def __init__(self, cached: int = DEFAULT_CACHED) -> None:
        # sqlglot warns of every command it has no model for; the kind of the statement says so.
        logging.getLogger("sqlglot").setLevel(logging.ERROR)
        self._entries: Cache[tuple[str, str], _Entry] = Cache(cached)
        # Where literals have meaning, by the key with its lists in full.
        self._in_full: Cache[tuple[str, str], _Entry] = Cache(cached)
        self._usage: Cache[tuple[object, ...], Inspection] = Cache(cached)
        self._glances: Cache[tuple[object, ...], Inspection] = Cache(cached)
        self._shapes: Cache[tuple[object, ...], tuple[Shape, ...]] = Cache(cached)
        self._templates: Cache[tuple[str, str], TemplateShape] = Cache(cached)
        self._scans: Cache[tuple[object, ...], tuple[ScanShape, ...]] = Cache(cached)
        self._last: _Keyed | None = None

    def fingerprint(self, sql: str, dialect: str) -> Fingerprint:
        """The template of a statement; never raises on account of the text or the dialect."""
        try:
            language = dialect_named(dialect)
        except UnknownDialectError as error:
            return _of_unknown_dialect(sql, error)
        key = language.masker.full_key(sql)
        known = self._known(sql, key, language)
        return known[0] if known else self._analyse(sql, key, language)[0].fingerprint

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
            nothing = _inspection(_of_unknown_dialect(sql, error))
            return _with_predicates(nothing, ()) if literals else nothing
        columns = schema if schema is None or isinstance(schema, Schema) else Schema(schema)
        wanted = _Wanted(
            language, Defaults(default_catalog, tuple(default_namespace), columns), literals
        )
        full_key = language.masker.full_key(sql)
        found = self._remembered(sql, full_key, wanted)
        return self._used(sql, full_key, wanted) if found is None else found

    def glance(
        self,
        sql: str,
        dialect: str,
        *,
        default_catalog: str | None = None,
        default_namespace: tuple[str, ...] = (),
    ) -> Inspection:
        """Template, kind and tables alone, for half the price of `inspect`; `columns` is empty.

        See `inspect` for the arguments; never raises, as `fingerprint`.
        """
        try:
            language = dialect_named(dialect)
        except UnknownDialectError as error:
            return _inspection(_of_unknown_dialect(sql, error))
        defaults = Defaults(default_catalog, tuple(default_namespace))
        full_key, known = self._keyed(sql, language)
        place = (language.name, default_catalog, defaults.namespace)
        found = self._glances.get((known[0].template_id, *place)) if known else None
        if found is not None:
            return found
        analysis, _ = self._analyse(sql, full_key, language)
        fingerprint, bound = analysis.fingerprint, analysis.bound
        named = {defaults.table(parts) for parts in bound.tables} if bound else set()
        found = replace(_inspection(fingerprint), tables=tuple(sorted(named)))
        if fingerprint.error is None:
            self._glances.put((fingerprint.template_id, *place), found)
        return found

    def shape(self, sql: str, dialect: str) -> StatementShape:
        """A text in numbers; never raises, as `fingerprint`.

        A dialect that is not known is read as plain SQL: what a text does can be counted anyway.
        """
        try:
            language = dialect_named(dialect)
        except UnknownDialectError:
            language = neutral_dialect()
        full_key, known = self._keyed(sql, language)
        template = self._templates.get((language.name, known[0].template_id)) if known else None
        if known is None or template is None:
            analysis, _ = self._analyse(sql, full_key, language)
            fingerprint = analysis.fingerprint
            if analysis.root is not None and analysis.bound is not None:
                tables = sorted(map(join_name, analysis.bound.tables))
                template = template_shape(analysis.root, tables)
                self._templates.put((language.name, fingerprint.template_id), template)
        else:
            fingerprint = known[0]
        literals = language.masker.mask(sql, full_key).literals if full_key is not None else ()
        return StatementShape(fingerprint.template_id, template, literal_numbers(literals))

    def scans(  # noqa: PLR0913 all but the text are by name
        self,
        sql: str,
        dialect: str,
        *,
        default_catalog: str | None = None,
        default_namespace: tuple[str, ...] = (),
        schema: Columns | None = None,
        at: datetime | None = None,
        truncations: bool = False,
    ) -> tuple[TableScan, ...] | None:
        """Every reading of a base table with its condition; the arguments are `inspect`'s.

        With `at`, when it runs (UTC), conditions on CURRENT_DATE and the like have their values.
        With `truncations`, `date(at) = …` counts as a range of `at`: not every engine sees that.
        None when nobody can tell: the text was not understood, or reads a table as it once was.
        """
        try:
            language = dialect_named(dialect)
        except UnknownDialectError:
            return None
        columns = schema if schema is None or isinstance(schema, Schema) else Schema(schema)
        defaults = Defaults(default_catalog, tuple(default_namespace), columns)
        wanted = _Wanted(language, defaults, literals=True)
        full_key, known = self._keyed(sql, language)
        if known is not None and full_key is not None:
            shapes = self._scans.get((known[1], *wanted.key(known[0])))
            if shapes is not None:
                slots = _slots(known[1], language.masker.mask(sql, full_key))
                slots.at = at
                return evaluate_scans(shapes, slots, truncations=truncations)
        found = self._scanned(sql, full_key, wanted)
        if found is None:
            return None
        shapes, slots = found
        slots.at = at
        return evaluate_scans(shapes, slots, truncations=truncations)

    def _scanned(
        self, sql: str, full_key: str | None, wanted: _Wanted
    ) -> tuple[tuple[ScanShape, ...], Slots] | None:
        """The readings of a text that must be analysed, and its literals."""
        analysis, key = self._analyse(sql, full_key, wanted.dialect)
        bound, lexed = analysis.bound, analysis.lexed
        if bound is None or lexed is None or bound.is_travelling:
            return None
        usage = Usage(bound, wanted.dialect, wanted.defaults)
        mask = wanted.dialect.masker.mask(sql, full_key) if key and full_key is not None else None
        numbering, slots = _numbered(lexed, key, mask)
        shapes = scan_shapes(bound, usage, lexed, numbering, wanted.defaults)
        if key is not None:
            self._scans.put((key, *wanted.key(analysis.fingerprint)), shapes)
        return shapes, slots

    def _remembered(self, sql: str, full_key: str | None, wanted: _Wanted) -> Inspection | None:
        """The inspection of a text whose key, usage and predicates are known."""
        known = self._known(sql, full_key, wanted.dialect)
        if known is None or full_key is None:
            return None
        fingerprint, key = known
        usage_key = wanted.key(fingerprint)
        inspection = self._usage.get(usage_key)
        if inspection is None or not wanted.literals:
            return inspection
        shapes = self._shapes.get((key, *usage_key))
        if shapes is None:
            return None
        slots = _slots(key, wanted.dialect.masker.mask(sql, full_key))
        return _with_predicates(inspection, evaluate(shapes, slots))

    def _used(self, sql: str, full_key: str | None, wanted: _Wanted) -> Inspection:
        """The inspection of a text that must be analysed."""
        analysis, key = self._analyse(sql, full_key, wanted.dialect)
        fingerprint, bound = analysis.fingerprint, analysis.bound
        usage_key = wanted.key(fingerprint)
        inspection = self._usage.get(usage_key) if fingerprint.error is None else None
        usage: Usage | None = None
        if bound is not None and (inspection is None or wanted.literals):
            usage = Usage(bound, wanted.dialect, wanted.defaults)
        if inspection is None:
            inspection = _inspection(fingerprint, usage)
            if fingerprint.error is None:
                self._usage.put(usage_key, inspection)
        if not wanted.literals:
            return inspection
        mask = wanted.dialect.masker.mask(sql, full_key) if key and full_key is not None else None
        shapes, slots = _shapes(analysis, usage, key, mask)
        if key is not None:
            self._shapes.put((key, *usage_key), shapes)
        return _with_predicates(inspection, evaluate(shapes, slots))

    # --- the hot path ------------------------------------------------------------------------

    def _keyed(
        self, sql: str, dialect: SqlDialect
    ) -> tuple[str | None, tuple[Fingerprint, str] | None]:
        """A text without its literals, and what is known under that."""
        last = self._last
        if last is not None and last.sql is sql and last.dialect is dialect:
            return last.full_key, last.known
        full_key = dialect.masker.full_key(sql)
        known = self._known(sql, full_key, dialect)
        if known is not None and full_key is not None:
            self._last = _Keyed(sql, dialect, full_key, known)
        return full_key, known

    def _known(
        self, sql: str, full_key: str | None, dialect: SqlDialect
    ) -> tuple[Fingerprint, str] | None:
        """The fingerprint and the key it lies under."""
        if full_key is None:
            return None
        key = shorten_lists(full_key)
        entry = self._entries.get((dialect.name, key))
        if entry is None:
            return None
        values: tuple[str, ...] = ()
        if entry.kept:
            # Literals are numbered as they stand in the text, so lists count in full.
            key = full_key
            entry = self._in_full.get((dialect.name, key))
            if entry is None:
                return None
            values = _values(entry.kept, dialect.masker.mask(sql, key).literals)
        fingerprint = entry.known.get(values)
        return None if fingerprint is None else (fingerprint, key)

    def _analyse(
        self, sql: str, full_key: str | None, dialect: SqlDialect
    ) -> tuple[Analysis, str | None]:
        """The analysis and the key it lies under from now on; None when it has none."""
        analysis = analyse(sql, dialect)
        if full_key is None or analysis.fingerprint.error is not None:
            return analysis, None
        mask = dialect.masker.mask(sql, full_key)
        # Agreement on where literals end makes the key stand for these tokens.
        is_agreed = mask.ends == analysis.ends
        return analysis, self._remember(mask, analysis, dialect) if is_agreed else None

    def _remember(self, mask: Mask, analysis: Analysis, dialect: SqlDialect) -> str | None:
        key, kept = shorten_lists(mask.full_key), analysis.kept
        places = [(self._entries, key)]
        if kept:
            places.append((self._in_full, mask.full_key))
        cache, key = places[-1]
        if len(key) > _LONGEST_KEY:
            return None
        values = _values(kept, mask.literals)
        for cache, each in places:
            entry = cache.get((dialect.name, each))
            if entry is None or entry.kept != kept or len(entry.known) >= _MOST_VALUES:
                entry = _Entry(kept)
                cache.put((dialect.name, each), entry)
            entry.known[values] = analysis.fingerprint
        return key


def _shapes(
    analysis: Analysis, usage: Usage | None, key: str | None, mask: Mask | None
) -> tuple[tuple[Shape, ...], Slots]:
    """The predicates' shapes under a key, and the literals of the analysed text."""
    bound, lexed = analysis.bound, analysis.lexed
    if usage is None or bound is None or lexed is None:
        return (), Slots(())
    numbering, slots = _numbered(lexed, key, mask)
    return shapes_of(bound, usage, lexed, numbering), slots


def _numbered(lexed: Lexed, key: str | None, mask: Mask | None) -> tuple[Numbering, Slots]:
    """Where the literals of an analysed text are found under its key, and what they are."""
    count = len(lexed.literals)
    if key is None or mask is None:
        return as_written(count), Slots([raw_of(token) for token in lexed.literals])
    is_full = key == mask.full_key
    numbering = as_written(count) if is_full else as_shortened(mask.full_key, count)
    return numbering, _slots(key, mask)


def _slots(key: str, mask: Mask) -> Slots:
    is_full = key == mask.full_key
    return Slots(mask.literals) if is_full else shortened(mask.full_key, mask.literals)


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


def _inspection(fingerprint: Fingerprint, usage: Usage | None = None) -> Inspection:
    return Inspection(
        fingerprint.template_id,
        fingerprint.template,
        fingerprint.kind,
        usage.tables() if usage else (),
        usage.columns() if usage else (),
        fingerprint.error,
        fingerprint.reason,
    )


def _with_predicates(found: Inspection, predicates: tuple[Predicate, ...]) -> Inspection:
    return Inspection(
        found.template_id,
        found.template,
        found.kind,
        found.tables,
        found.columns,
        found.error,
        found.reason,
        predicates,
    )
