"""The filters every view understands, and the one way they reach SQL: as bound parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lakehouse_core.domain.errors import FilterError
from lakehouse_core.domain.query import QueryStatus
from lakehouse_core.views.window import DEFAULT_WINDOW, Window, parse_window

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

STATUSES: tuple[str, ...] = tuple(status.value for status in QueryStatus)

# What takes the place of `{events}` in the statements of the views. Only constants are ever put
# together; every value is a bound parameter. The time comes first: it prunes row groups.
_EVENTS = """(
  SELECT *, rowid FROM query_event
  WHERE submitted_at >= $start::TIMESTAMPTZ AND submitted_at < $end::TIMESTAMPTZ
    AND ($engine::VARCHAR IS NULL OR engine_id = $engine::VARCHAR)
    AND ($status::VARCHAR IS NULL OR status = $status::VARCHAR)
    AND ($user::VARCHAR IS NULL OR user_name = $user::VARCHAR)
    AND ($template::VARCHAR IS NULL OR template_id = $template::VARCHAR)
    AND ($tag::VARCHAR IS NULL OR list_contains(tags, $tag::VARCHAR))
    AND ($text::VARCHAR IS NULL OR query_id = $text::VARCHAR
      OR contains(lower(sql_text), lower($text::VARCHAR))
      OR contains(lower(error_message), lower($text::VARCHAR)))
)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What to look at; all texts, so that a page's address and a command line hold the same.

    Attributes:
        window: see `lakehouse_core.views.window`.
        engine: an engine id.
        status: one of `STATUSES`.
        user: the user's name, exactly.
        text: part of the SQL text or the error message, in any case, or a whole query id.
        tag: one tag, exactly.
        template: the id of a template, exactly.
    """

    window: str = DEFAULT_WINDOW
    engine: str | None = None
    status: str | None = None
    user: str | None = None
    text: str | None = None
    tag: str | None = None
    template: str | None = None

    def __post_init__(self) -> None:
        """An empty text filters nothing; an unknown status is refused, not ignored."""
        for name in ("engine", "status", "user", "text", "tag", "template"):
            value = getattr(self, name)
            object.__setattr__(self, name, (value or "").strip() or None)
        if self.status is not None and self.status not in STATUSES:
            raise FilterError(f"Status {self.status!r} is not known. Use: {', '.join(STATUSES)}.")

    def window_at(self, now: datetime) -> Window:
        """The window as of now."""
        return parse_window(self.window, now)

    def only_engine(self) -> Filters:
        """Window and engine alone: what the shared filter bar holds."""
        return Filters(window=self.window, engine=self.engine)

    def with_status(self, status: str | None) -> Filters:
        """The same with another status."""
        return replace(self, status=status)

    def params(self, window: Window) -> dict[str, Any]:
        """The bound parameters of `over_events`."""
        return {
            "start": window.start,
            "end": window.end,
            "engine": self.engine,
            "status": self.status,
            "user": self.user,
            "tag": self.tag,
            "text": self.text,
            "template": self.template,
        }


def check_engine(engine: str | None, known: Collection[str]) -> None:
    """Refuse an engine nobody knows, rather than showing that it did nothing.

    Raises:
        FilterError: names the known ones.
    """
    if engine is not None and engine not in known:
        names = ", ".join(sorted(known)) or "none: the configuration has no engine"
        raise FilterError(f"Engine {engine!r} is not known. Known are: {names}.")


def over_events(sql: str) -> str:
    """A statement whose `{events}` are the query events that pass the filters."""
    return sql.replace("{events}", _EVENTS)
