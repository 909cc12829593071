r"""Half characters in JSON: `"\ud800"` is allowed there, but is no text.

Drivers that cut a statement at a number of UTF-16 units write such texts. A strict parser refuses
the whole document, and with it every other event in it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

import msgspec

if TYPE_CHECKING:
    from msgspec.json import Decoder

T = TypeVar("T")
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
# Every escape in turn, so that the second backslash of `\\` begins none.
_ESCAPE = re.compile(
    rb"\\(?:(?P<high>u[dD][89abAB][0-9a-fA-F]{2})(?P<low>\\u[dD][c-fC-F][0-9a-fA-F]{2})?"
    rb"|(?P<lone>u[dD][c-fC-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def decoded(decoder: Decoder[T], data: bytes) -> T:
    """What the decoder makes of a document, mended if need be.

    Raises:
        msgspec.DecodeError, UnicodeDecodeError, RecursionError: it cannot be read.
    """
    try:
        return decoder.decode(data)
    except msgspec.DecodeError:
        whole = mended(data)
        if whole is None:
            raise
        return decoder.decode(whole)


def mended(data: bytes) -> bytes | None:
    """The document with replacement characters for half ones; None when it has none."""
    if _HALF.search(data) is None:
        return None
    found = _ESCAPE.sub(_whole, data)
    return found if found != data else None


def _whole(escape: re.Match[bytes]) -> bytes:
    is_half = (escape["high"] and not escape["low"]) or escape["lone"]
    return rb"\ufffd" if is_half else escape[0]
