"""Loading the configuration: one YAML file, variables in it, overrides from the environment.

loaded = load_config()
loaded.config.store.path          # absolute
str(loaded.origins["store.path"]) # "config/lakehelm.yaml:9", or "default", …
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakehouse_core.config.document import Document, read_document
from lakehouse_core.config.interpolation import Interpolation, interpolate
from lakehouse_core.config.overrides import Overridden, apply_overrides
from lakehouse_core.config.paths import with_absolute_paths
from lakehouse_core.config.problems import (
    DEFAULT,
    InvalidConfigError,
    Origin,
    Problem,
    dotted,
    looks_secret,
    shown,
)
from lakehouse_core.config.validation import holds_secret, validate
from lakehouse_core.config.walk import leaves, value_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lakehouse_core.config.models import Config
    from lakehouse_core.config.problems import Finding, KeyPath

PATH_VARIABLE = "LAKEHELM_CONFIG"
DEFAULT_PATH = Path("config/lakehelm.yaml")


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration, where each of its values came from, and the file it was read from."""

    config: Config
    origins: Mapping[str, Origin]
    path: Path


def config_path(path: Path | str | None = None, environ: Mapping[str, str] = os.environ) -> Path:
    """Which file is read: the one given, else $LAKEHELM_CONFIG, else ./config/lakehelm.yaml."""
    if path is not None:
        return Path(path)
    return Path(environ.get(PATH_VARIABLE) or DEFAULT_PATH)


def load_config(path: Path | str | None = None, environ: Mapping[str, str] = os.environ) -> Loaded:
    """Load and check the configuration.

    Raises:
        ConfigError: the file cannot be read; or, as `InvalidConfigError`, everything that is wrong
            in it.
    """
    file = config_path(path, environ)
    document = read_document(file)
    data, filled = interpolate(document.data, environ)
    overridden = apply_overrides(data, environ)
    config, findings = validate(overridden.data)
    tree = _Tree(document, filled, overridden)
    problems = tree.problems(findings)
    if config is None or problems:
        raise InvalidConfigError(document.name, problems)
    config = with_absolute_paths(config, file)
    origins = {dotted(at): tree.origin(at) for at, _ in leaves(config)}
    return Loaded(config, origins, file.absolute())


class _Tree:
    """The merged tree with the history of each value."""

    def __init__(self, document: Document, filled: Interpolation, merged: Overridden) -> None:
        self._document = document
        self._filled = filled
        self._merged = merged

    def origin(self, path: KeyPath) -> Origin:
        """Where the value at a path came from."""
        if not self._is_given(path):
            if path[:2] == ("health", "tables"):  # what an override does not name is inherited
                return self.origin(("health", "defaults", *path[3:]))
            return DEFAULT
        return self._nearest_origin(path)

    def problems(self, findings: list[Finding]) -> list[Problem]:
        """Everything that is wrong, in the order of the file, overrides last."""
        # A text whose variable is missing, or that YAML cannot read, is wrong for that alone.
        unread = {problem.key for problem in self._document.problems}
        unfilled = {p: m for p, m in self._filled.failures.items() if not self._is_overridden(p)}
        found = [self._problem(path, message) for path, message in unfilled.items()]
        found += [
            self._of_finding(finding)
            for finding in findings
            if finding.path not in unfilled and dotted(finding.path) not in unread
        ]
        found.sort(key=lambda pair: pair[0])
        first = [*self._document.problems, *self._merged.problems]
        return first + [problem for _, problem in found]

    def _of_finding(self, finding: Finding) -> tuple[int, Problem]:
        path = finding.path
        line, problem = self._problem(path, finding.message)
        is_given = self._is_given(path)
        return line, Problem(
            place=problem.place,
            key=problem.key,
            message=finding.message,
            value=self._shown(path) if is_given else None,
            allowed=finding.allowed,
            nearest=finding.nearest,
        )

    def _problem(self, path: KeyPath, message: str) -> tuple[int, Problem]:
        origin = self._nearest_origin(path)
        line = next(
            (self._document.lines[p] for p in _upwards(path) if p in self._document.lines), 0
        )
        return line, Problem(place=str(origin), key=dotted(path), message=message)

    def _shown(self, path: KeyPath) -> str:
        value = value_at(path, self._merged.data)
        variables = self._filled.variables.get(path, ())
        secret = holds_secret(path, self._merged.data) or any(looks_secret(v) for v in variables)
        return shown(value, secret=secret)

    def _is_given(self, path: KeyPath) -> bool:
        parent = value_at(path[:-1], self._merged.data)
        return isinstance(parent, dict | list) and (
            path[-1] in parent if isinstance(parent, dict) else True
        )

    def _is_overridden(self, path: KeyPath) -> bool:
        return any(p in self._merged.variables for p in _upwards(path))

    def _nearest_origin(self, path: KeyPath) -> Origin:
        for at in _upwards(path):
            if at in self._merged.variables:
                return Origin("environment", self._merged.variables[at])
            if at in self._document.lines:
                place = f"{self._document.name}:{self._document.lines[at]}"
                variables = self._filled.variables.get(at, ()) if at == path else ()
                return Origin("variable" if variables else "file", place, variables)
        return Origin("file", self._document.name)


def _upwards(path: KeyPath) -> Iterator[Any]:
    for length in range(len(path), 0, -1):
        yield path[:length]
