"""Arrow types as Trino names them, in the two forms its clients read.

    type_of(pa.decimal128(12, 2)).text          # decimal(12,2)
    type_of(pa.timestamp("us")).signature()     # {"rawType": "timestamp", "arguments": [...]}

A client that does not announce PARAMETRIC_DATETIME gets times in milliseconds under their bare
names, as Trino gives them to old clients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable

_UNBOUNDED = 2_147_483_647  # what Trino says for a varchar without a length
_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_SIMPLE: dict[pa.DataType, str] = {
    pa.null(): "unknown",
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.uint8(): "smallint",
    pa.uint16(): "integer",
    pa.uint32(): "bigint",
    pa.float16(): "real",
    pa.float32(): "real",
    pa.float64(): "double",
    pa.date32(): "date",
    pa.date64(): "date",
    pa.month_day_nano_interval(): "interval day to second",
    pa.duration("s"): "interval day to second",
    pa.duration("ms"): "interval day to second",
    pa.duration("us"): "interval day to second",
    pa.duration("ns"): "interval day to second",
}


@dataclass(frozen=True, slots=True)
class TrinoType:
    """A type: its raw name, numbers, and the types it holds with their field names."""

    raw: str
    numbers: tuple[int, ...] = ()
    held: tuple[tuple[str | None, TrinoType], ...] = ()

    @property
    def text(self) -> str:
        """As SQL spells it."""
        if self.raw == "varchar" and self.numbers == (_UNBOUNDED,):
            return "varchar"
        if self.held:
            parts = [
                f"{_quoted(name)} {kind.text}" if name is not None else kind.text
                for name, kind in self.held
            ]
            return f"{self.raw}({', '.join(parts) if self.raw == 'row' else ','.join(parts)})"
        if not self.numbers:
            return self.raw
        base, _, tail = self.raw.partition(" ")
        numbers = ",".join(map(str, self.numbers))
        return f"{base}({numbers}) {tail}" if tail else f"{base}({numbers})"

    def signature(self) -> dict[str, Any]:
        """As `typeSignature` in the protocol."""
        arguments: list[dict[str, Any]] = [{"kind": "LONG", "value": n} for n in self.numbers]
        for name, kind in self.held:
            if name is None:
                arguments.append({"kind": "TYPE", "value": kind.signature()})
            else:
                value = {"fieldName": {"name": name}, "typeSignature": kind.signature()}
                arguments.append({"kind": "NAMED_TYPE", "value": value})
        return {"rawType": self.raw, "arguments": arguments}


VARCHAR = TrinoType("varchar", (_UNBOUNDED,))


def columns_of(schema: pa.Schema, *, parametric: bool = True) -> list[dict[str, Any]]:
    """The protocol's `columns`."""
    kinds = [(field.name, type_of(field.type, parametric=parametric)) for field in schema]
    return [
        {"name": name, "type": kind.text, "typeSignature": kind.signature()} for name, kind in kinds
    ]


def type_of(kind: pa.DataType, *, parametric: bool = True) -> TrinoType:
    """Trino's type for an Arrow type; what Trino has no type for is varchar.

    Args:
        kind: the Arrow type.
        parametric: whether the client knows times with a precision.
    """
    if isinstance(kind, pa.BaseExtensionType):
        special = {"arrow.uuid": "uuid", "arrow.json": "json"}.get(kind.extension_name)
        return TrinoType(special) if special else type_of(kind.storage_type, parametric=parametric)
    if pa.types.is_dictionary(kind):
        return type_of(kind.value_type, parametric=parametric)
    if kind in _SIMPLE:
        return TrinoType(_SIMPLE[kind])
    if pa.types.is_temporal(kind):
        return _temporal(kind, parametric=parametric)
    if pa.types.is_nested(kind):
        return _nested(kind, lambda inner: type_of(inner, parametric=parametric))
    return _scalar(kind)


def _scalar(kind: pa.DataType) -> TrinoType:
    if pa.types.is_decimal(kind) and 0 < kind.precision <= 38 and 0 <= kind.scale <= kind.precision:
        return TrinoType("decimal", (kind.precision, kind.scale))
    if pa.types.is_uint64(kind):
        return TrinoType("decimal", (20, 0))
    is_binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    if is_binary or pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind):
        return TrinoType("varbinary")
    return VARCHAR


def _temporal(kind: pa.DataType, *, parametric: bool) -> TrinoType:
    digits = (_DIGITS[kind.unit],) if parametric else ()
    if pa.types.is_time(kind):
        return TrinoType("time", digits)
    return TrinoType("timestamp with time zone" if kind.tz is not None else "timestamp", digits)


def _nested(kind: pa.DataType, inner: Callable[[pa.DataType], TrinoType]) -> TrinoType:
    if pa.types.is_map(kind):
        return TrinoType("map", (), ((None, inner(kind.key_type)), (None, inner(kind.item_type))))
    if pa.types.is_struct(kind):
        return TrinoType("row", (), tuple((field.name, inner(field.type)) for field in kind))
    if pa.types.is_union(kind):
        return VARCHAR
    return TrinoType("array", (), ((None, inner(kind.value_type)),))


def _quoted(name: str) -> str:
    """A field name as Trino writes it inside `row(…)`."""
    is_plain = name.isidentifier() and name.islower()
    return name if is_plain else '"' + name.replace('"', '""') + '"'
