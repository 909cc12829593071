"""Statements as vectors: what the predictor's model sees of a query before it runs.

space = FeatureSpace.learned(shapes)
space.vector(shape, scan_bytes=5e9, scan_files=120)

The first places are counts of what the statement does, then what its literals and its scan
estimate say, then the tables and functions that occur in enough templates to be worth a place.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from lakehouse_core.routing.profiles_wear import wear_of
from lakehouse_core.sql.shape import COUNTS, LITERALS, TemplateShape

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from lakehouse_core.sql.shape import StatementShape

_SCAN = ("scan_bytes", "scan_bytes_known", "scan_files", "scan_selectivity")
_FIXED = (*COUNTS, *LITERALS, *_SCAN, "understood")
_LITERALS_AT, _SCAN_AT = len(COUNTS), len(COUNTS) + len(LITERALS)
_MOST_WORDS = 40
_REMEMBERED = 20_000


@dataclass(frozen=True, slots=True)
class ScanFacts:
    """What is known about the scan of one statement; None: nobody can tell."""

    bytes: float | None = None
    files: float | None = None
    selectivity: float | None = None

    @property
    def wear(self) -> float | None:
        """Condition of the tables, see `profiles_wear`."""
        return wear_of(self.files, self.bytes)


NO_SCAN = ScanFacts()


@dataclass(frozen=True, slots=True)
class FeatureSpace:
    """Which place of a vector means what; fixed when the model is trained.

    Attributes:
        words: tables (`table:…`) and functions (`function:…`) with a place of their own.
    """

    words: tuple[str, ...] = ()
    _known: dict[str, NDArray[np.float64]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def learned(cls, templates: Iterable[TemplateShape | None]) -> FeatureSpace:
        """The space for these templates, each given once."""
        seen: Counter[str] = Counter()
        count = 0
        for one in templates:
            count += 1
            if one is not None:
                seen.update(_words(one))
        # A word that every template has, or only one, tells nothing about the next template.
        kept = [(n, word) for word, n in seen.items() if 2 <= n < count]
        return cls(tuple(word for _, word in sorted(kept, key=_by_use)[:_MOST_WORDS]))

    @property
    def names(self) -> tuple[str, ...]:
        """What the places are called."""
        return (*_FIXED, *self.words)

    def vector(self, shape: StatementShape, scan: ScanFacts = NO_SCAN) -> NDArray[np.float64]:
        """The vector of one statement."""
        found = self._of_template(shape).copy()
        found[_LITERALS_AT:_SCAN_AT] = shape.literals
        if scan.bytes is not None:
            found[_SCAN_AT] = math.log2(1.0 + max(scan.bytes, 0.0))
            found[_SCAN_AT + 1] = 1.0
        if scan.files is not None:
            found[_SCAN_AT + 2] = math.log2(1.0 + max(scan.files, 0.0))
        if scan.selectivity is not None:
            found[_SCAN_AT + 3] = scan.selectivity
        return found

    def matrix(
        self, shapes: Sequence[StatementShape], scans: Sequence[ScanFacts]
    ) -> NDArray[np.float64]:
        """The vectors of many statements, one per row."""
        rows = [self.vector(shape, scan) for shape, scan in zip(shapes, scans, strict=True)]
        return np.array(rows) if rows else np.zeros((0, len(self.names)))

    def _of_template(self, shape: StatementShape) -> NDArray[np.float64]:
        """The part that every text of a template shares."""
        known = self._known.get(shape.template_id)
        if known is not None:
            return known
        vector = np.zeros(len(_FIXED) + len(self.words))
        if shape.template is not None:
            vector[: len(COUNTS)] = np.log1p(shape.template.counts)
            vector[len(_FIXED) - 1] = 1.0
            present = _words(shape.template)
            vector[len(_FIXED) :] = [word in present for word in self.words]
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[shape.template_id] = vector
        return vector


def _words(template: TemplateShape) -> set[str]:
    return {
        *(f"table:{name.lower()}" for name in template.tables),
        *(f"function:{name}" for name in template.functions),
    }


def _by_use(counted: tuple[int, str]) -> tuple[Any, ...]:
    return -counted[0], counted[1]
