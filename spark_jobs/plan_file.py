"""The plan file that whoever starts a job writes: a JSON object."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

P = TypeVar("P")


class PlanError(Exception):
    """Raised when a plan file cannot be understood; names what is wrong."""


def read_plan_file(path: Path, parse: Callable[[dict[str, Any]], P]) -> P:
    """The plan from its file.

    Raises:
        PlanError: it is not there, not JSON, or `parse` does not take it.
    """
    try:
        return parse(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise PlanError(f"Plan file {path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise PlanError(f"Plan file {path} is not JSON: {error}") from error
