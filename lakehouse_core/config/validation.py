"""From a tree of plain values to a `Config`, or to every problem in it at once."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from lakehouse_core.config.checks import check
from lakehouse_core.config.models import Config
from lakehouse_core.config.problems import Finding, looks_secret, nearest
from lakehouse_core.config.shape import annotation_at, is_secret, is_section, key_path, known_keys
from lakehouse_core.config.walk import value_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic_core import ErrorDetails

    from lakehouse_core.config.problems import KeyPath

_PLAIN_WORDS = {
    "bool_parsing": "expected true or false",
    "bool_type": "expected true or false",
    "dict_type": "expected a mapping (key: value)",
    "float_parsing": "expected a number",
    "float_type": "expected a number",
    "int_from_float": "expected a whole number",
    "int_parsing": "expected a whole number",
    "int_parsing_size": "expected a smaller number",
    "int_type": "expected a whole number",
    "missing": "is missing and has no default",
    "model_attributes_type": "expected a mapping (key: value)",
    "model_type": "expected a mapping (key: value)",
    "path_type": "expected a path",
    "string_pattern_mismatch": "a name is lower-case letters and digits, joined by - or _, and "
    "starts with a letter",
    "string_too_short": "must not be empty",
    "string_type": "expected text",
    "too_short": "must not be empty",
}


def validate(data: dict[str, Any]) -> tuple[Config | None, list[Finding]]:
    """Validate a tree; the config is None when there is any finding."""
    data = without_empty_sections(data)
    try:
        config = Config.model_validate(data)
    except ValidationError as error:
        findings = [finding_of(details, data) for details in error.errors(include_url=False)]
        return None, findings + _checks_on_the_rest(data, findings)
    findings = check(config)
    return (None if findings else config), findings


def without_empty_sections(data: dict[str, Any], path: KeyPath = (), root: Any = None) -> Any:
    """A section with nothing under it (all its keys commented out) counts as not given."""
    root = data if root is None else root
    result = {}
    for key, value in data.items():
        at = (*path, key)
        if value is None and is_section(annotation_at(at, root)) and not _is_named(path, root):
            continue
        result[key] = without_empty_sections(value, at, root) if isinstance(value, dict) else value
    return result


def _is_named(path: KeyPath, root: Any) -> bool:
    """Whether the keys at a path are names given by the user, such as engines."""
    return bool(path) and not known_keys(annotation_at(path, root), value_at(path, root))


def _checks_on_the_rest(data: dict[str, Any], findings: list[Finding]) -> list[Finding]:
    """Run the cross-checks too, with the wrong keys taken out, so that one run tells everything."""
    rest = copy.deepcopy(data)
    wrong = {finding.path for finding in findings}
    for path in wrong:
        parent = value_at(path[:-1], rest)
        if path and isinstance(parent, dict):
            parent.pop(path[-1], None)
    try:
        config = Config.model_validate(rest)
    except ValidationError:
        return []
    return [finding for finding in check(config) if finding.path not in wrong]


def finding_of(details: ErrorDetails, data: dict[str, Any]) -> Finding:
    """An error of pydantic's in our words, at the key people know."""
    path = key_path(details["loc"], data)
    context: Mapping[str, Any] = details.get("ctx", {})
    match details["type"]:
        case "extra_forbidden":
            return _unknown_key(path, data)
        case "union_tag_invalid":
            allowed = str(context["expected_tags"]).replace("'", "")
            return Finding(
                path=(*path, "type"),
                message="no such type",
                allowed=allowed,
                nearest=nearest(str(context["tag"]), allowed.split(", ")),
            )
        case "union_tag_not_found":
            return Finding(path=(*path, "type"), message=_PLAIN_WORDS["missing"])
        case "literal_error":
            allowed = str(context["expected"]).replace("'", "").replace(" or ", ", ")
            value = str(value_at(path, data))
            return Finding(
                path=path,
                message="not an allowed value",
                allowed=allowed,
                nearest=nearest(value, allowed.split(", ")),
            )
        case kind:
            message = _PLAIN_WORDS.get(kind) or _in_our_words(details["msg"])
            return Finding(path=path, message=message)


def _unknown_key(path: KeyPath, data: dict[str, Any]) -> Finding:
    parent = value_at(path[:-1], data)
    known = known_keys(annotation_at(path[:-1], data), parent)
    return Finding(
        path=path,
        message="unknown key",
        allowed=", ".join(known),
        nearest=nearest(str(path[-1]), known),
    )


def _in_our_words(message: str) -> str:
    return message.removeprefix("Value error, ").replace("Input should be", "must be")


def holds_secret(path: KeyPath, data: Any) -> bool:
    """Whether the value at a path must not be shown, also when its key is misspelt."""
    annotation = annotation_at(path, data)
    if annotation is not None and is_secret(annotation):
        return True
    if not path:
        return False
    meant = _unknown_key(path, data).nearest if annotation is None else None
    return looks_secret(str(path[-1])) or looks_secret(meant or "")
