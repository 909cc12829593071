"""What rows that follow each other say of an order."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from lakehouse_core.layout.packing.arrays import Floats, Places

LEAST_PAIRS = 30  # of rows, that something is told by
RISES = 0.9  # of the neighbours that differ: the column is sorted


def direction(steps: Places) -> int:
    """1 where neighbours rise, -1 where they fall, 0 where they do neither.

    Args:
        steps: from each row to the next.
    """
    up, down = int((steps > 0).sum()), int((steps < 0).sum())
    if up + down < LEAST_PAIRS or max(up, down) < RISES * (up + down):
        return 0
    return 1 if up > down else -1


def is_strewn(points: Floats) -> bool:
    """Whether the order has nothing to do with a column.

    Two lots between 0 and 1 are a third apart on average; the mean of n such steps is off by less
    than 1 / sqrt(n), of the third, in nearly all samples.
    """
    step = float(np.abs(np.diff(points)).mean()) if len(points) > 1 else 1 / 3
    return abs(3 * step - 1) < 3 / math.sqrt(len(points)) + 0.005
