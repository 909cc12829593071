"""The gate every statement passes in its final text, once per role and shape.

    gate = Gate(Policy(role="analyst", rules=(...)), relations)
    verdict = gate.check(sql, "trino", Asker(user="ana", catalog="lake"))
    verdict.allowed, verdict.rule, verdict.sql

What is remembered: the answer to a text without its literals and comments (`sql.mask`), for a
dialect, a session and, where a row filter names `:user`, a user. The tree is parsed blind to
literals (`sql.tree`), so an answer cannot depend on one but through the row limit, which is worked
out for every text. Characters that change the text itself are looked for in every text, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse_core.sql import limits
from lakehouse_core.sql.analysis import PARSER_FAILURES
from lakehouse_core.sql.cache import Cache
from lakehouse_core.sql.dialect import UnknownDialectError, dialect_named
from lakehouse_core.sql.guard.edits import Template, apply, template
from lakehouse_core.sql.guard.names import Known, Tables
from lakehouse_core.sql.guard.records import RefusedError, Rule, Verdict
from lakehouse_core.sql.guard.statement import Reading, read
from lakehouse_core.sql.guard.text import refuse_raw
from lakehouse_core.sql.guard.walk import Walk
from lakehouse_core.sql.lex import end_of
from lakehouse_core.sql.mask import shorten_lists

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakehouse_core.sql.dialect import SqlDialect
    from lakehouse_core.sql.guard.records import Policy, Relation

DEFAULT_CACHED = 10_000
_LONGEST_KEY = 16 * 1024


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks, and in which session.

    Attributes:
        user: the value of `:user` in row filters.
        catalog: completes names that lack theirs.
        namespace: as above.
    """

    user: str | None = None
    catalog: str | None = None
    namespace: tuple[str, ...] = ()


NOBODY = Asker()
ALL_KNOWN = Known()


@dataclass(frozen=True, slots=True)
class _Answer:
    """What is known of a shape: refused, allowed as it is, or allowed in another form."""

    rule: Rule | None = None
    reason: str = ""
    template: Template | None = None
    reads: bool = True


class Gate:
    """Decides for one role; made anew when the policy or the catalog changes. Thread-safe."""

    def __init__(
        self,
        policy: Policy,
        relations: Mapping[str, Relation] | None = None,
        *,
        known: Known = ALL_KNOWN,
        cached: int = DEFAULT_CACHED,
    ) -> None:
        """Make a gate.

        Args:
            policy: of the role.
            relations: tables and views by full name in lower case; None: no catalog is at hand, and
                any plain name may be a table.
            known: how much of the lake that is.
            cached: how many shapes are remembered.
        """
        self.policy = policy
        self._tables = Tables(policy, relations, known)
        self._walks: dict[str, Walk] = {}
        self._names_user = any(":user" in (rule.row_filter or "") for rule in policy.rules) or any(
            ":user" in mask for rule in policy.rules for mask in rule.masks.values()
        )
        self._shapes: Cache[tuple[object, ...], _Answer] = Cache(cached)
        self._texts: Cache[tuple[object, ...], _Answer] = Cache(cached)

    def check(
        self,
        sql: str,
        dialect: str,
        asker: Asker = NOBODY,
        *,
        estimated_bytes: int | None = None,
    ) -> Verdict:
        """Whether a text may run, and how; never raises on account of the text.

        Args:
            sql: the text as the engine would get it.
            dialect: the engine's.
            asker: who asks.
            estimated_bytes: what it would read; needed when the role has a limit.
        """
        try:
            return Verdict(True, self._checked(sql, dialect_named(dialect), asker, estimated_bytes))
        except RefusedError as error:
            return Verdict(False, sql, error.rule, error.reason)
        except UnknownDialectError as error:
            return Verdict(False, sql, Rule.UNKNOWN_DIALECT, str(error))
        except PARSER_FAILURES as error:
            # The parser is a program fed with strangers' text; where it fails, nothing is allowed.
            name = type(error).__name__
            return Verdict(False, sql, Rule.NOT_UNDERSTOOD, f"the parser failed with {name}")

    def _checked(
        self, sql: str, dialect: SqlDialect, asker: Asker, estimated_bytes: int | None
    ) -> str:
        refuse_raw(sql, dialect)
        full_key = dialect.masker.full_key(sql)
        session: tuple[object, ...] = (dialect.name, asker.catalog, asker.namespace)
        if self._names_user:
            session = (*session, asker.user)
        answer = None if full_key is None else self._remembered(full_key, session)
        if answer is None:
            text, reads = self._decided(sql, full_key, dialect, asker, session)
        elif answer.rule is not None:
            raise RefusedError(answer.rule, answer.reason)
        elif answer.template is None or full_key is None:
            text, reads = sql, answer.reads
        else:
            text = answer.template.fill(dialect.masker.mask(sql, full_key).literals)
            reads = answer.reads
        if reads:
            self._refuse_bytes(estimated_bytes)
        return text

    def _remembered(self, full_key: str, session: tuple[object, ...]) -> _Answer | None:
        known = self._shapes.get((shorten_lists(full_key), *session))
        return known if known is not None else self._texts.get((full_key, *session))

    def _decided(
        self,
        sql: str,
        full_key: str | None,
        dialect: SqlDialect,
        asker: Asker,
        session: tuple[object, ...],
    ) -> tuple[str, bool]:
        """The text to run and whether it reads; remembered when its key stands for it."""
        if len(sql) > limits.MAX_CHARACTERS:
            raise RefusedError(
                Rule.NOT_UNDERSTOOD,
                f"it has {len(sql)} characters, more than the limit {limits.MAX_CHARACTERS}",
            )
        walk = self._walks.get(dialect.name)
        if walk is None:
            walk = self._walks[dialect.name] = Walk(dialect, self.policy)
        reading = Reading(dialect, self.policy, self._tables, asker.catalog, asker.namespace)
        found = None
        try:
            found = read(sql, reading, walk, asker.user)
        except RefusedError as error:
            # Without tokens nobody knows whether the key stands for the text.
            if full_key is not None and error.rule not in (Rule.TEXT, Rule.NOT_UNDERSTOOD):
                self._shapes.put(
                    (shorten_lists(full_key), *session), _Answer(error.rule, error.reason)
                )
            raise
        limit_edits = [found.limit.edit] if found.limit and found.limit.edit else []
        changed, _ = apply(sql, [*found.edits, *limit_edits])
        if full_key is None or len(full_key) > _LONGEST_KEY:
            return changed, found.reads
        mask = dialect.masker.mask(sql, full_key)
        if mask.ends != tuple(end_of(token) for token in found.lexed.literals):
            return changed, found.reads
        limit = found.limit.limit if found.limit else None
        if not found.edits and limit is None:
            answer = _Answer(reads=found.reads)
            self._shapes.put((shorten_lists(full_key), *session), answer)
            return changed, found.reads
        shape = template(sql, found.edits, mask, dialect.masker.comments(sql), limit)
        if shape is not None:
            answer = _Answer(template=shape, reads=found.reads)
            self._texts.put((full_key, *session), answer)
        return changed, found.reads

    def _refuse_bytes(self, estimated_bytes: int | None) -> None:
        at_most = self.policy.max_bytes
        if at_most is None:
            return
        if estimated_bytes is None:
            raise RefusedError(
                Rule.BYTE_LIMIT,
                f"nobody knows how much it would read, and the role {self.policy.role} may read at "
                f"most {at_most} bytes; add a filter on a partition or sort column",
            )
        if estimated_bytes > at_most:
            raise RefusedError(
                Rule.BYTE_LIMIT,
                f"it would read {estimated_bytes} bytes, and the role {self.policy.role} may read "
                f"at most {at_most}; add a filter on a partition or sort column",
            )
