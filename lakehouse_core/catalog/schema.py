"""Columns and sort order of a table, from the JSON of its metadata file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# A bucket scatters neighbours and void forgets them: bounds of the column say nothing then.
_UNORDERED = ("bucket", "void")


@dataclass(frozen=True, slots=True)
class Field:
    """One column, or one field inside a structured column."""

    field_id: int
    name: str  # dotted below the top level: `address.city`
    type: str  # Iceberg's own spelling: `long`, `decimal(9, 2)`, `struct<city: string>`
    is_column: bool  # False below the top level
    is_required: bool = False
    doc: str | None = None


@dataclass(frozen=True, slots=True)
class SortKey:
    """One key of a sort order."""

    source_id: int
    transform: str
    order: str  # `ASC NULLS FIRST`


@dataclass(frozen=True, slots=True)
class SortOrder:
    """How the table asks writers to sort."""

    order_id: int
    text: str  # `region ASC NULLS FIRST, day(ts) DESC NULLS LAST`
    leading: Field | None  # the first sort column, when its bounds follow the order
    keys: tuple[SortKey, ...] = ()


def flatten(schema: dict[str, Any], prefix: str = "") -> Iterator[Field]:
    """All fields of a struct, parents before children; lists and maps are not entered."""
    for raw in schema["fields"]:
        name = f"{prefix}{raw['name']}"
        yield Field(
            int(raw["id"]),
            name,
            type_text(raw["type"]),
            is_column=not prefix,
            is_required=bool(raw.get("required")),
            doc=raw.get("doc"),
        )
        if isinstance(raw["type"], dict) and raw["type"].get("type") == "struct":
            yield from flatten(raw["type"], f"{name}.")


def type_text(raw: str | dict[str, Any]) -> str:
    """Iceberg's spelling of a type."""
    if isinstance(raw, str):
        return raw
    if raw["type"] == "struct":
        inner = ", ".join(f"{one['name']}: {type_text(one['type'])}" for one in raw["fields"])
        return f"struct<{inner}>"
    if raw["type"] == "list":
        return f"list<{type_text(raw['element'])}>"
    return f"map<{type_text(raw['key'])}, {type_text(raw['value'])}>"


def sort_order(raw: dict[str, Any], fields: Sequence[Field]) -> SortOrder | None:
    """The table's default sort order, None when it has none."""
    order_id = int(raw.get("default-sort-order-id") or 0)
    orders = {int(one["order-id"]): one["fields"] for one in raw.get("sort-orders") or ()}
    keys = tuple(_key(one) for one in orders.get(order_id) or ())
    if not keys:
        return None
    by_id = {field.field_id: field for field in fields}
    leading = keys[0]
    is_ordered = not leading.transform.startswith(_UNORDERED)
    return SortOrder(
        order_id,
        ", ".join(_key_text(key, by_id) for key in keys),
        by_id.get(leading.source_id) if is_ordered else None,
        keys,
    )


def source_id(key: dict[str, Any]) -> int:
    """The column that a sort key or partition field is made of; of several the first."""
    source = key["source-id"] if "source-id" in key else key["source-ids"][0]
    return int(source)


def _key(raw: dict[str, Any]) -> SortKey:
    order = f"{raw['direction']} {raw['null-order']}".upper().replace("-", " ")
    return SortKey(source_id(raw), str(raw["transform"]), order)


def _key_text(key: SortKey, by_id: dict[int, Field]) -> str:
    field = by_id.get(key.source_id)
    name = field.name if field else f"#{key.source_id}"  # the column was dropped
    term = name if key.transform == "identity" else f"{key.transform}({name})"
    return f"{term} {key.order}"
