from __future__ import annotations

import pytest

from collectors.trino.units import parse_milliseconds, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0B", 0),
        ("3837B", 3837),
        ("1kB", 1024),
        ("3.1GB", int(3.1 * 2**30)),
        ("1.50MB", 1_572_864),
        ("2TB", 2 * 2**40),
        (17, 17),
    ],
)
def test_sizes_are_binary_whatever_their_letters_say(text: object, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("0.00ns", 0),
        ("669.00ms", 669),
        ("1.20s", 1_200),
        ("43.23ms", 43.23),
        ("1.74m", 104_400),
        ("2.00h", 7_200_000),
        ("1.00d", 86_400_000),
        ("12.5us", 0.0125),
    ],
)
def test_durations_become_milliseconds(text: str, milliseconds: float) -> None:
    assert parse_milliseconds(text) == pytest.approx(milliseconds)


@pytest.mark.parametrize("text", ["", "fast", "12", "-1B", "NaNB", "1XB", None, True, [1]])
def test_what_is_no_size_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match=r"size|number|unit|duration|time"):
        parse_size(text)


@pytest.mark.parametrize("text", ["", "soon", "12", "-1s", "1parsec", None, 5])
def test_what_is_no_duration_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match=r"size|number|unit|duration|time"):
        parse_milliseconds(text)
