"""What trino-gateway's rules work with: Java's strings, collections and Optional, in part."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Method = Callable[..., Any]


class RuleFailedError(Exception):
    """Raised when a rule that was read well fails on a request, as Java would with an exception."""


@dataclass(frozen=True, slots=True)
class Optional:
    """A value or none."""

    value: Any = None


@dataclass(frozen=True, slots=True)
class Host:
    """An object of the gateway that rules may ask: its methods by name."""

    methods: Mapping[str, Method]


def _present(optional: Optional) -> Any:
    if optional.value is None:
        raise RuleFailedError("get() of an empty Optional")
    return optional.value


_TEXT: dict[str, Method] = {
    "equals": lambda text, other: text == other,
    "equalsIgnoreCase": lambda text, other: (
        isinstance(other, str) and text.lower() == other.lower()
    ),
    "contains": lambda text, part: str(part) in text,
    "startsWith": lambda text, part: text.startswith(part),
    "endsWith": lambda text, part: text.endswith(part),
    "matches": lambda text, pattern: re.fullmatch(pattern, text) is not None,
    "indexOf": lambda text, part: text.find(part),
    "toLowerCase": lambda text: text.lower(),
    "toUpperCase": lambda text: text.upper(),
    "trim": lambda text: text.strip(),
    "strip": lambda text: text.strip(),
    "length": len,
    "isEmpty": lambda text: not text,
    "isBlank": lambda text: not text.strip(),
    "substring": lambda text, start, end=None: text[start:end],
    "replace": lambda text, old, new: text.replace(old, new),
    "split": lambda text, pattern: re.split(pattern, text),
    "toString": lambda text: text,
}
_COLLECTION: dict[str, Method] = {
    "contains": lambda items, item: item in items,
    "containsAll": lambda items, others: all(item in items for item in others),
    "isEmpty": lambda items: not items,
    "size": len,
}
_SET: dict[str, Method] = _COLLECTION | {
    "add": lambda items, item: items.add(item),
    "addAll": lambda items, others: items.update(others),
    "remove": lambda items, item: items.discard(item),
}
_LIST: dict[str, Method] = _COLLECTION | {
    "add": lambda items, item: items.append(item),
    "addAll": lambda items, others: items.extend(others),
    "get": lambda items, index: items[index],
}
_MAP: dict[str, Method] = {
    "put": lambda entries, key, value: entries.__setitem__(key, value),
    "putIfAbsent": lambda entries, key, value: entries.setdefault(key, value),
    "get": lambda entries, key: entries.get(key),
    "getOrDefault": lambda entries, key, other: entries.get(key, other),
    "containsKey": lambda entries, key: key in entries,
    "remove": lambda entries, key: entries.pop(key, None),
    "isEmpty": lambda entries: not entries,
    "size": len,
}
_OPTIONAL: dict[str, Method] = {
    "isPresent": lambda optional: optional.value is not None,
    "isEmpty": lambda optional: optional.value is None,
    "orElse": lambda optional, other: other if optional.value is None else optional.value,
    "equals": lambda optional, other: optional == other,
}
_BY_TYPE: tuple[tuple[type, dict[str, Method]], ...] = (
    (str, _TEXT),
    (set, _SET),
    (frozenset, _COLLECTION),
    (list, _LIST),
    (tuple, _LIST),
    (dict, _MAP),
    (Optional, _OPTIONAL | {"get": _present}),
)
REQUEST_METHODS = (
    *("getHeader", "getMethod", "getRequestURI", "getQueryString", "getRemoteUser"),
    *("getRemoteAddr", "getRemoteHost"),
)
USER_METHODS = ("getUser", "getUserInfo", "userExistsAndEquals")
QUERY_METHODS = (
    *("getQueryType", "getResourceGroupQueryType", "getDefaultCatalog", "getDefaultSchema"),
    *("getCatalogs", "getSchemas", "getCatalogSchemas", "getTables", "tablesContains", "getBody"),
    *("isNewQuerySubmission", "isQueryParsingSuccessful", "getErrorMessage", "errorMessage"),
)
METHODS = frozenset(
    {name for _, methods in _BY_TYPE for name in methods}
    | {*REQUEST_METHODS, *USER_METHODS, *QUERY_METHODS}
)
GROUP_KEY = "routingGroup"
STATICS: dict[str, Any] = {
    "FileBasedRoutingGroupSelector.RESULTS_ROUTING_GROUP_KEY": GROUP_KEY,
    "Optional.of": Optional,
    "Optional.ofNullable": Optional,
    "Optional.empty": Optional,
    "Set.of": lambda *items: frozenset(items),
    "List.of": lambda *items: list(items),
    "Arrays.asList": lambda *items: list(items),
    "Integer.parseInt": int,
    "Integer.valueOf": int,
    "String.valueOf": str,
}
_CLASSES: dict[str, Callable[..., Any]] = (
    dict.fromkeys(("HashSet", "LinkedHashSet", "TreeSet"), set)
    | dict.fromkeys(("ArrayList", "LinkedList"), list)
    | dict.fromkeys(("HashMap", "LinkedHashMap", "TreeMap"), dict)
)


def new_instance(name: str, arguments: list[Any]) -> Any:
    """A collection that a rule makes.

    Raises:
        RuleFailedError: rules may not make one of those.
    """
    made = _CLASSES.get(name)
    if made is None:
        raise RuleFailedError(f"new {name}() is not known here; there are {', '.join(_CLASSES)}")
    return made(*arguments)


def call(target: Any, name: str, arguments: list[Any]) -> Any:
    """Call a method of a value.

    Raises:
        RuleFailedError: the value has no such method, or the call fails.
    """
    if target is None:
        raise RuleFailedError(f"{name}() was called on null")
    if isinstance(target, Host):
        method = target.methods.get(name)
        given = arguments
    else:
        method = next((m.get(name) for kind, m in _BY_TYPE if isinstance(target, kind)), None)
        given = [target, *arguments]
    if method is None:
        raise RuleFailedError(f"a {type(target).__name__} has no method {name}()")
    try:
        return method(*given)
    except (TypeError, ValueError, LookupError, re.error) as error:
        raise RuleFailedError(f"{name}(): {error}") from error


def equal(left: Any, right: Any) -> bool:
    """As MVEL compares: numbers and their texts are equal, everything else as it is."""
    if isinstance(left, str) and isinstance(right, int | float) and not isinstance(right, bool):
        return left == str(right)
    if isinstance(right, str) and isinstance(left, int | float) and not isinstance(left, bool):
        return str(left) == right
    return bool(left == right)


def order(left: Any, right: Any) -> int:
    """Which of two comes first.

    Raises:
        RuleFailedError: they cannot be compared.
    """
    try:
        return int(left > right) - int(left < right)
    except TypeError as error:
        raise RuleFailedError(f"{left!r} and {right!r} cannot be compared") from error


def contains(holder: Any, item: Any) -> bool:
    """MVEL's operator: nothing contains nothing, a text its parts, a collection its items."""
    if holder is None or item is None:
        return False
    if isinstance(holder, str):
        return str(item) in holder
    try:
        return item in holder
    except TypeError as error:
        raise RuleFailedError(f"a {type(holder).__name__} contains nothing") from error
