"""One YAML file as plain values plus the line of every key; duplicate keys are refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from lakehouse_core.config.problems import InvalidConfigError, KeyPath, Problem, dotted
from lakehouse_core.domain.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

_MAX_BYTES = 4 * 2**20
# What PyYAML lets through when a scalar does not fit its tag: !!bool x, !!float '', 2024-13-45.
_UNREADABLE = (ValueError, LookupError, AttributeError, ArithmeticError)
_MAX_NODES = 20_000  # aliases of aliases can unfold a small file into a huge tree


@dataclass(slots=True)
class Document:
    """What the file says.

    Attributes:
        name: the file as the user named it.
        data: its values, not yet interpolated.
        lines: the line on which each key or item stands.
        problems: what is wrong already at this level (duplicate keys, keys that are not text).
    """

    name: str
    data: dict[str, Any] = field(default_factory=dict)
    lines: dict[KeyPath, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def read_document(path: Path) -> Document:
    """Read and parse the file.

    Raises:
        ConfigError: it cannot be read, is not text, not YAML, or not a mapping.
    """
    name = str(path)
    text = _read_text(path)
    try:
        return _parse(name, text)
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(name, error) from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{name}: not readable as YAML: {error}") from error
    except RecursionError as error:
        raise ConfigError(f"{name}: nested too deeply to be a configuration") from error


def parse_value(text: str) -> object:
    """Parse one YAML value, as an override variable holds it.

    Raises:
        ValueError: it is not YAML.
    """
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, *_UNREADABLE) as error:
        raise ValueError("not YAML") from error


def _parse(name: str, text: str) -> Document:
    loader = yaml.SafeLoader(text)
    node = loader.get_single_node()
    if node is None:
        raise ConfigError(f"{name}: the file is empty; it must be a mapping of sections")
    if not isinstance(node, yaml.MappingNode):
        raise ConfigError(
            f"{name}:{node.start_mark.line + 1}: the file must be a mapping (key: value), "
            f"but holds a {_kind(node)}"
        )
    document = Document(name)
    document.data = _Builder(loader, document).mapping(node, ())
    return document


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(_MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise ConfigError(
            f"{path}: no such file; name one with --config or LAKEHELM_CONFIG"
        ) from error
    except IsADirectoryError as error:
        raise ConfigError(f"{path}: is a folder; name the YAML file in it") from error
    except PermissionError as error:
        raise ConfigError(f"{path}: may not be read by this user; check its permissions") from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    if len(raw) > _MAX_BYTES:
        raise ConfigError(f"{path}: larger than {_MAX_BYTES // 2**20} MiB; not a configuration")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path}: is not UTF-8 text (byte {error.start}); not a configuration"
        ) from error


def _syntax_error(name: str, error: yaml.MarkedYAMLError) -> ConfigError:
    mark = error.problem_mark or error.context_mark
    place = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
    why = error.problem or "not YAML"
    if error.context:
        why = f"{why} ({error.context})"
    return InvalidConfigError(
        name, [Problem(place=place, key="", message=f"YAML syntax error: {why}")]
    )


def _kind(node: yaml.Node) -> str:
    return "list" if isinstance(node, yaml.SequenceNode) else "single value"


class _Builder:
    """Turns nodes into values, remembering lines; one per file."""

    def __init__(self, loader: yaml.SafeLoader, document: Document) -> None:
        self._loader = loader
        self._document = document
        self._nodes = 0
        self._open: set[int] = set()  # mappings and lists we are inside of
        self._flat: set[int] = set()  # mappings whose merge keys are resolved already

    def mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        """Build a mapping; a key given twice is a problem, the first one stays."""
        self._enter(node)
        if id(node) not in self._flat:
            self._flat.add(id(node))
            self._refuse_duplicates(node, path)
            self._loader.flatten_mapping(node)  # merge keys (<<) come first, own keys win
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node, path)
            if key is None:
                continue
            self._document.lines[(*path, key)] = key_node.start_mark.line + 1
            result[key] = self._value(value_node, (*path, key))
        self._open.discard(id(node))
        return result

    def _value(self, node: yaml.Node, path: KeyPath) -> Any:
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            self._enter(node)
            items = []
            for index, item in enumerate(node.value):
                self._document.lines[(*path, index)] = item.start_mark.line + 1
                items.append(self._value(item, (*path, index)))
            self._open.discard(id(node))
            return items
        self._enter(node)
        self._open.discard(id(node))
        return self._scalar(node, path)

    def _scalar(self, node: yaml.Node, path: KeyPath) -> Any:
        try:
            return self._loader.construct_object(node)
        except _UNREADABLE:
            # The library's words quote the value, which may be a secret.
            kind = node.tag.rpartition(":")[2]
            self._problem(node, path, f"looks like a YAML {kind} but is none; put it in quotes")
            return None

    def _key(self, node: yaml.Node, path: KeyPath) -> str | None:
        key = self._scalar(node, path) if isinstance(node, yaml.ScalarNode) else None
        if isinstance(key, str):
            return key
        if isinstance(key, int | float) and not isinstance(key, bool):
            return str(node.value)
        self._problem(node, path, "a key must be text; put it in quotes")
        return None

    def _refuse_duplicates(self, node: yaml.MappingNode, path: KeyPath) -> None:
        first: dict[str, int] = {}
        kept = []
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            name = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if name is not None and name != "<<" and name in first:
                self._problem(
                    key_node, (*path, name), f"given twice; first on line {first[name]}: keep one"
                )
                continue
            if name is not None:
                first[name] = line
            kept.append((key_node, value_node))
        node.value = kept

    def _enter(self, node: yaml.Node) -> None:
        self._nodes += 1
        place = f"{self._document.name}:{node.start_mark.line + 1}"
        if id(node) in self._open:
            raise ConfigError(f"{place}: an alias refers to the mapping or list it stands in")
        if self._nodes > _MAX_NODES:
            raise ConfigError(f"{place}: unfolds into too many values; use fewer aliases")
        self._open.add(id(node))

    def _problem(self, node: yaml.Node, path: KeyPath, message: str) -> None:
        place = f"{self._document.name}:{node.start_mark.line + 1}"
        self._document.problems.append(Problem(place=place, key=dotted(path), message=message))
