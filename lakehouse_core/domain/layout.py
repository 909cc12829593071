"""How the rows of a table are arranged into files.

Layout.parse("zorder(region, ts)").columns    # ("region", "ts")
str(Layout(kind="hilbert", columns=("a", "b"), primary=("day",)))    # "day, hilbert(a, b)"
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from lakehouse_core.domain.maintenance import Kind

LayoutKind = Literal["present", "linear", "zorder", "hilbert"]
MOST_COLUMNS = 4
_CURVE = re.compile(
    r"^(?:(?P<primary>.*),)?\s*(?P<kind>zorder|hilbert)\s*\((?P<inner>.*)\)\s*$", re.I
)
_NAME = re.compile(
    r'\s*(?:"(?P<double>(?:[^"]|"")+)"|`(?P<back>(?:[^`]|``)+)`|(?P<plain>[^\s,()"`]+))\s*'
)
_PLAIN = re.compile(r"^[A-Za-z_][A-Za-z0-9_.]*$")
_KINDS = {"linear": Kind.SORT, "zorder": Kind.ZORDER, "hilbert": Kind.HILBERT}


@dataclass(frozen=True, slots=True)
class Layout:
    """One way to arrange rows.

    Attributes:
        kind: `present` is the files as they are.
        columns: of the order, or those a curve goes through.
        primary: what rows are ordered by before the curve.
    """

    kind: LayoutKind
    columns: tuple[str, ...] = ()
    primary: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.kind == "present":
            return "present"
        names = ", ".join(_shown(name) for name in self.columns)
        if self.kind == "linear":
            return names
        before = "".join(f"{_shown(name)}, " for name in self.primary)
        return f"{before}{self.kind}({names})"

    @property
    def all_columns(self) -> tuple[str, ...]:
        """Every column it needs."""
        return (*self.primary, *self.columns)

    @property
    def action(self) -> Kind:
        """The maintenance that brings it about.

        Raises:
            ValueError: it is the present layout: nothing is to be done.
        """
        if self.kind not in _KINDS:
            raise ValueError("the present layout needs no action")
        return _KINDS[self.kind]

    @property
    def complexity(self) -> int:
        """Simple ones first: what a person would rather have when both serve alike."""
        is_curve = self.kind in ("zorder", "hilbert")
        base = 0 if self.kind == "present" else 10 * len(self.all_columns)
        return base + (5 if is_curve else 0) + (1 if self.kind == "hilbert" else 0)

    @property
    def survives_appends(self) -> bool:
        """Whether writers can be asked for it: a curve cannot be a table's order in Iceberg."""
        return self.kind == "linear"

    @classmethod
    def parse(cls, text: str) -> Layout:
        """Read a layout back from its text.

        Raises:
            ValueError: it is none; says what one looks like.
        """
        if text.strip().lower() == "present":
            return PRESENT
        found = _CURVE.match(text)
        if found is None:
            return _checked(cls("linear", _names(text)), text)
        kind: LayoutKind = "zorder" if found["kind"].lower() == "zorder" else "hilbert"
        primary = _names(found["primary"]) if found["primary"] else ()
        return _checked(cls(kind, _names(found["inner"]), primary), text)


PRESENT = Layout("present")


def _checked(layout: Layout, text: str) -> Layout:
    least = 1 if layout.kind == "linear" else 2
    names = layout.all_columns
    if len(set(names)) < len(names):
        raise ValueError(f"{text!r} names a column twice")
    if not least <= len(layout.columns) or len(names) > MOST_COLUMNS + 1:
        raise ValueError(
            f"{text!r} is no layout: give 1 to {MOST_COLUMNS} columns (a, b), or 2 to "
            f"{MOST_COLUMNS} in zorder(a, b) or hilbert(a, b)"
        )
    if layout.primary and layout.kind == "zorder":
        raise ValueError(f"{text!r}: after a first column only hilbert(…) can be carried out")
    return layout


def _names(text: str) -> tuple[str, ...]:
    found, position = [], 0
    while True:
        match = _NAME.match(text, position)
        if match is None:
            raise ValueError(f"{text!r} is no list of columns: a, b or zorder(a, b)")
        quoted = match["double"].replace('""', '"') if match["double"] else None
        quoted = match["back"].replace("``", "`") if match["back"] else quoted
        found.append(quoted or match["plain"])
        position = match.end()
        if position == len(text):
            return tuple(found)
        if text[position] != ",":
            raise ValueError(f"{text!r} is no list of columns: a comma is missing")
        position += 1


def _shown(name: str) -> str:
    return name if _PLAIN.match(name) else '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutAdvice:
    """What was advised for a table at a moment; a row of `layout_advice`.

    Attributes:
        layout: its text; None: leave the table as it is.
        advice: candidates, evidence and prediction, as JSON (`layout/advise.py`).
        workload: the conditions that were replayed, as JSON (`layout/workload.py`).
    """

    advice_id: str
    table_id: str
    advised_at: datetime
    snapshot_id: int | None
    layout: str | None
    reason: str
    target_bytes: int
    advice: str
    workload: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutLook:
    """When the layout agent last took a table up; a row of `layout_look`.

    Attributes:
        error: why it came to nothing; None: it came to advice.
    """

    table_id: str
    looked_at: datetime
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutProof:
    """A template on an engine planned before and after a rewrite; a row of `layout_proof`.

    Bytes and files are of one run.
    """

    action_id: str
    template_id: str
    engine_id: str
    proven_at: datetime
    runs: int
    bytes_before: float
    files_before: float
    bytes_predicted: float | None
    files_predicted: float | None
    bytes_after: float
    files_after: float
