"""Routing in a file of its own: QueryFlux's, or one with its keys; read again while we run.

A router that leads to a group nobody defined is a warning here, not an error: QueryFlux's own
example has one.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from lakehouse_core.config.document import read_document
from lakehouse_core.config.interpolation import interpolate
from lakehouse_core.config.problems import InvalidConfigError, Problem, dotted, shown
from lakehouse_core.config.routing import FOREIGN_SECTIONS, OLDER_SPELLINGS, RoutingConfig
from lakehouse_core.config.routing_checks import check_routing, check_targets
from lakehouse_core.config.validation import finding_of, holds_secret, without_empty_sections
from lakehouse_core.config.walk import value_at

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from pydantic_core import ErrorDetails

    from lakehouse_core.config.document import Document
    from lakehouse_core.config.problems import Finding

_SECTION = "routing"


@dataclass(frozen=True, slots=True)
class RoutingFile:
    """What a routing file says, and what in it is doubtful."""

    routing: RoutingConfig
    warnings: tuple[Problem, ...] = ()


def read_routing_file(
    path: Path, engines: Collection[str], environ: Mapping[str, str] = os.environ
) -> RoutingFile:
    """Read and check a routing file.

    Args:
        path: the file.
        engines: ids of the configured engines, which may be members too.
        environ: what `${NAME}` in the file stands for.

    Raises:
        ConfigError: it cannot be read; or, as `InvalidConfigError`, everything that is wrong in it.
    """
    document = read_document(path)
    data, filled = interpolate(_ours(document.data), environ)
    unfilled = [_unfilled(document, at, text) for at, text in filled.failures.items()]
    if document.problems or unfilled:
        raise InvalidConfigError(document.name, [*document.problems, *unfilled])
    data = without_empty_sections({_SECTION: data})[_SECTION]
    try:
        routing = RoutingConfig.model_validate(data)
    except ValidationError as error:
        findings = [_below(details, data) for details in error.errors(include_url=False)]
        raise _invalid(document, findings, data) from error
    doubtful = list(check_targets(routing))
    findings = [one for one in check_routing(routing, engines) if one not in doubtful]
    if findings:
        raise _invalid(document, findings, data)
    return RoutingFile(routing, tuple(_problem(document, one, data) for one in doubtful))


def _ours(data: dict[str, Any]) -> dict[str, Any]:
    return {
        OLDER_SPELLINGS.get(key, key): value
        for key, value in data.items()
        if key not in FOREIGN_SECTIONS
    }


def _below(details: ErrorDetails, data: dict[str, Any]) -> Finding:

    details["loc"] = (_SECTION, *details["loc"])
    finding = finding_of(details, {_SECTION: data})
    return replace(finding, path=finding.path[1:])


def _invalid(document: Document, findings: list[Finding], data: Any) -> InvalidConfigError:
    problems = [_problem(document, finding, data) for finding in findings]
    return InvalidConfigError(document.name, sorted(problems, key=lambda one: _line(one.place)))


def _problem(document: Document, finding: Finding, data: Any) -> Problem:
    path, value = finding.path, value_at(finding.path, data)
    is_secret = holds_secret((_SECTION, *path), {_SECTION: data})
    return Problem(
        place=_place(document, path),
        key=dotted(path),
        message=finding.message,
        value=None if value is None else shown(value, secret=is_secret),
        allowed=finding.allowed,
        nearest=finding.nearest,
    )


def _unfilled(document: Document, path: tuple[str | int, ...], text: str) -> Problem:
    return Problem(place=_place(document, path), key=dotted(path), message=text)


def _place(document: Document, path: tuple[str | int, ...]) -> str:
    for length in range(len(path), 0, -1):
        line = document.lines.get(path[:length])
        if line is not None:
            return f"{document.name}:{line}"
    return document.name


def _line(place: str) -> int:
    number = place.rpartition(":")[2]
    return int(number) if number.isdigit() else 0
