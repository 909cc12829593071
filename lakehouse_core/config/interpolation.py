"""`${VAR}` and `${VAR:-default}` in the values of the file; `$${` stands for a literal `${`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakehouse_core.config.problems import KeyPath

_TOKEN = re.compile(
    r"\$\$\{|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}|(?P<bad>\$\{)"
)


@dataclass(slots=True)
class Interpolation:
    """What the pass found: which variables went where, and what could not be filled in."""

    variables: dict[KeyPath, tuple[str, ...]] = field(default_factory=dict)
    failures: dict[KeyPath, str] = field(default_factory=dict)


def interpolate(value: Any, environ: Mapping[str, str]) -> tuple[Any, Interpolation]:
    """Fill in every text of a tree; a text that cannot be filled in stays as it was."""
    found = Interpolation()
    return _fill(value, (), environ, found), found


def _fill(value: Any, path: KeyPath, environ: Mapping[str, str], found: Interpolation) -> Any:
    if isinstance(value, dict):
        return {k: _fill(v, (*path, k), environ, found) for k, v in value.items()}
    if isinstance(value, list):
        return [_fill(v, (*path, i), environ, found) for i, v in enumerate(value)]
    if isinstance(value, str) and "${" in value:
        return _fill_text(value, path, environ, found)
    return value


def _fill_text(text: str, path: KeyPath, environ: Mapping[str, str], found: Interpolation) -> str:
    used: list[str] = []

    def replace(match: re.Match[str]) -> str:
        name, default = match["name"], match["default"]
        if match["bad"] or (default is not None and "${" in default):
            found.failures[path] = (
                "malformed ${...}: write ${NAME} or ${NAME:-default} (a default holds no further "
                "variable), or $${ for a literal ${"
            )
            return match[0]
        if name is None:
            return "${"
        value = environ.get(name)
        if default is not None:
            used.append(f"${{{name}}}" if value else f"default of ${{{name}}}")
            return value or str(default)
        if value is None:
            found.failures.setdefault(
                path,
                f"environment variable {name} is not set; set it, or write ${{{name}:-default}}",
            )
            return match[0]
        used.append(f"${{{name}}}")
        return value

    filled = _TOKEN.sub(replace, text)
    if path in found.failures:
        return text
    if used:
        found.variables[path] = tuple(used)
    return filled
