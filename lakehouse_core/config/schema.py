"""The JSON schema of the configuration file, generated from the models for editors and CI."""

from __future__ import annotations

import json
from typing import Any

from lakehouse_core.config.models import Config

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_VARIABLE = {
    "description": "A text with environment variables in it: ${NAME} or ${NAME:-default}.",
    "pattern": r"\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}",
    "type": "string",
}
_REF = {"$ref": "#/$defs/Variable"}
_NARROW = ("enum", "const", "pattern")
# Bounds that stand outside a validator come out of pydantic under its own names.
_BOUNDS = {"ge": "minimum", "le": "maximum", "gt": "exclusiveMinimum", "lt": "exclusiveMaximum"}


def json_schema() -> str:
    """The schema as the text of config/schema.json."""
    schema = _with_variables(Config.model_json_schema())
    schema["$schema"] = _DRAFT
    schema["title"] = "Lakehelm configuration"
    schema["$defs"]["Variable"] = _VARIABLE
    return json.dumps(schema, indent=2, sort_keys=True) + "\n"


def _with_variables(node: Any) -> Any:
    """Let `${VAR}` stand wherever a number, a flag or a restricted text is expected."""
    if isinstance(node, list):
        return [_with_variables(item) for item in node]
    if not isinstance(node, dict):
        return node
    walked = {
        key: value if key in ("default", "examples", "propertyNames") else _with_variables(value)
        for key, value in node.items()
    }
    kind = node.get("type")
    is_scalar = kind in ("integer", "number", "boolean") or (
        kind in ("string", ["string", "integer"]) and any(word in node for word in _NARROW)
    )
    if not is_scalar:
        return walked
    walked = {_BOUNDS.get(key, key): value for key, value in walked.items()}
    outside = {key: walked.pop(key) for key in ("default", "title", "description") if key in walked}
    return {**outside, "anyOf": [walked, _REF]}
