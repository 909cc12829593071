"""What a row takes under a layout, told by a sample, against the whole table really written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakehouse_core.layout.packing import Packing
from lakehouse_core.layout.packing.parquet import written_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Places = NDArray[np.int64]

ROWS, FILE_ROWS, CUSTOMERS = 600_000, 20_000, 25_000
THICK, THIN = 1 / 40, 1 / 200


@dataclass(frozen=True, slots=True)
class Order:
    """Rows by columns, or along a Z-curve through them."""

    columns: tuple[str, ...]
    is_curve: bool = False

    def of(self, rows: pa.Table) -> Places:
        if not self.is_curve:
            keys = [(name, "ascending") for name in self.columns]
            return pc.sort_indices(rows, sort_keys=keys).to_numpy().astype(np.int64)
        key = np.zeros(rows.num_rows, np.int64)
        for number, name in enumerate(self.columns):
            codes = pc.rank(rows[name], tiebreaker="dense").to_numpy().astype(np.int64)
            shares = codes * 1024 // (int(codes.max()) + 1)
            for bit in range(10):
                key |= (shares >> bit & 1) << (bit * len(self.columns) + number)
        return np.argsort(key, kind="stable")


@dataclass(frozen=True, slots=True)
class Whole:
    """A table, what it takes in each order, and samples of it in the order it has."""

    table: pa.Table
    _row_bytes: dict[Order | None, float] = field(default_factory=dict)
    _samples: dict[float, tuple[pa.Table, Packing]] = field(default_factory=dict)

    def row_bytes(self, order: Order | None = None) -> float:
        if order not in self._row_bytes:
            places = np.arange(ROWS) if order is None else order.of(self.table)
            files = [places[start : start + FILE_ROWS] for start in range(0, ROWS, ROWS // 5)]
            total = sum(written_bytes(self.table.take(file)) for file in files)
            self._row_bytes[order] = total / FILE_ROWS / len(files)  # some files stand for all
        return self._row_bytes[order]

    def sample(self, fraction: float) -> tuple[pa.Table, Packing]:
        if fraction not in self._samples:
            lots = np.random.default_rng(8).choice(ROWS, int(ROWS * fraction), replace=False)
            rows = self.table.take(np.sort(lots))
            told = Packing(rows, fraction, float("inf"), file_rows=FILE_ROWS)
            self._samples[fraction] = rows, told
        return self._samples[fraction]

    def assert_told(self, order: Order, fraction: float, error: float) -> None:
        rows, packing = self.sample(fraction)
        real = self.row_bytes(order) / self.row_bytes()
        assert packing.share(order.of(rows)) == pytest.approx(real, rel=error)


@pytest.fixture(scope="module")
def shop() -> Whole:
    """Its rows by lot, with every kind of value."""
    rng = np.random.default_rng(17)
    customer = rng.integers(0, CUSTOMERS, ROWS)
    names = pa.array([f"{rng.bytes(5).hex()} {rng.bytes(4).hex()}" for _ in range(CUSTOMERS)])
    skus = pa.array([f"sku-{n:06}" for n in range(10_000)])
    countries = pa.array(["DE", "AT", "FR", "IT", "NL", "PL", "UK", "US"])
    codes = rng.bytes(ROWS * 12).hex()
    words = np.stack([rng.integers(0, 1_000_000, ROWS), np.zeros(ROWS, np.int64)], axis=1)
    cents = [None, pa.py_buffer(words.tobytes())]
    coupon = rng.integers(0, 900, ROWS).astype(np.int32)
    segment = rng.integers(0, 4, CUSTOMERS)[customer]
    return Whole(pa.table({
        "customer": customer.astype(np.int32),
        "name": names.take(pa.array(customer)),
        "segment": names.slice(0, 4).take(pa.array(segment)),
        "household": (customer // 10 + rng.integers(0, 20, ROWS)).astype(np.int32),
        "country": countries.take(pa.array(np.floor(8 * rng.random(ROWS) ** 3).astype(int))),
        "at": timestamps(rng.integers(1_790_000_000, 1_797_776_000, ROWS)),
        "amount": pa.Array.from_buffers(pa.decimal128(12, 2), ROWS, cents),
        "sku": skus.take(pa.array(rng.integers(0, 10_000, ROWS))),
        "coupon": pa.array(coupon, mask=rng.random(ROWS) > 0.03),
        "session": pa.array([codes[n : n + 24] for n in range(0, len(codes), 24)]),
    }))  # fmt: skip


@pytest.fixture(scope="module")
def till() -> Whole:
    """Few things are bought often, addresses are words, and some are not the customer's own."""
    rng = np.random.default_rng(21)
    customer = rng.integers(0, CUSTOMERS, ROWS)
    words = np.array([rng.bytes(int(n)).hex() for n in rng.integers(2, 5, 2_000)])
    picked = words[np.minimum(rng.zipf(1.3, (CUSTOMERS, 5)), len(words)) - 1]
    lengths = rng.integers(3, 6, CUSTOMERS)
    addresses = [" ".join(some[:n]) for some, n in zip(picked, lengths, strict=True)]
    at_home = np.where(rng.random(ROWS) < 0.02, rng.integers(0, CUSTOMERS, ROWS), customer)
    seconds = rng.integers(0, 7_776_000, ROWS)
    return Whole(pa.table({
        "customer": customer.astype(np.int32),
        "address": pa.array(addresses).take(pa.array(at_home)),
        "price": np.round(rng.lognormal(3, 1, ROWS), 2),
        "at": timestamps(seconds),
        "week": pa.array([f"2026-W{n:02}" for n in range(13)]).take(pa.array(seconds // 604_800)),
        "sku": np.minimum(rng.zipf(1.3, ROWS), 20_000),
    }))  # fmt: skip


@pytest.fixture(scope="module")
def lines() -> Whole:
    """Lines by their order's number: its date is any, and tells whether the order is done."""
    rng = np.random.default_rng(23)
    number = np.arange(ROWS) // 4
    ordered = rng.integers(0, 240, ROWS // 4)[number]
    shipped = ordered + rng.integers(1, 13, ROWS)
    received = shipped + rng.integers(1, 31, ROWS)
    return Whole(pa.table({
        "number": number * 7 + rng.integers(0, 3, ROWS // 4)[number],
        "shipped": pa.array(shipped.astype(np.int32)).cast(pa.date32()),
        "received": pa.array(received.astype(np.int32)).cast(pa.date32()),
        "status": pa.array(["F", "O"]).take(pa.array((ordered > 130).astype(int))),
        "quantity": rng.integers(1, 51, ROWS),
    }))  # fmt: skip


def timestamps(seconds: Places) -> pa.Array:
    return pa.array(seconds).cast(pa.timestamp("s")).cast(pa.timestamp("us"))


SHOP_ORDERS = {
    "unique texts": Order(("session",)),
    "times": Order(("at",)),
    "numbers that tell texts": Order(("customer",)),
    "numbers like others": Order(("household",)),
    "first told by second": Order(("segment", "customer")),
    "curve": Order(("customer", "sku"), is_curve=True),
}


@pytest.mark.slow
@pytest.mark.parametrize("fraction", [THICK, THIN], ids=["thick", "thin"])
@pytest.mark.parametrize("order", SHOP_ORDERS.values(), ids=SHOP_ORDERS)
def test_a_sample_tells_how_much_smaller_an_ordered_table_is(
    shop: Whole, order: Order, fraction: float
) -> None:
    shop.assert_told(order, fraction, 0.02)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("order", "fraction"),
    [
        pytest.param(Order(("sku", "at")), THIN, id="second rises in runs of the first"),
        pytest.param(Order(("address",)), THICK, id="texts that mostly have one number"),
        pytest.param(Order(("week", "customer"), True), THICK, id="curve by what mostly tells"),
    ],
)
def test_columns_that_mostly_go_along_with_another(
    till: Whole, order: Order, fraction: float
) -> None:
    till.assert_told(order, fraction, 0.04)


@pytest.mark.slow
def test_keys_that_rise_within_each_value_of_the_order_are_not_repeated(lines: Whole) -> None:
    """Told 66 % too small when they were; what is left is keys that come back days later."""
    lines.assert_told(Order(("shipped",)), THICK, 0.22)


@pytest.mark.slow
def test_a_sorted_table_grows_in_another_order_and_when_it_is_shuffled(shop: Whole) -> None:
    by_customer, by_time = Order(("customer",)), Order(("at",))
    now = Whole(shop.table.take(by_customer.of(shop.table)))
    rows, packing = now.sample(THIN)
    sorted_bytes = shop.row_bytes(by_customer)
    told = packing.share(by_time.of(rows))
    assert told == pytest.approx(shop.row_bytes(by_time) / sorted_bytes, rel=0.02)
    told = packing.share(np.random.default_rng(10).permutation(rows.num_rows))
    assert told == pytest.approx(shop.row_bytes() / sorted_bytes, rel=0.02)


@pytest.mark.slow
def test_an_order_by_none_of_the_columns_changes_nothing(shop: Whole) -> None:
    rows, packing = shop.sample(THIN)
    order = np.random.default_rng(1).permutation(rows.num_rows)
    assert packing.share(order) == pytest.approx(1.0, abs=0.001)


def test_a_whole_table_is_measured_not_extrapolated() -> None:
    rows = pa.table({"a": np.random.default_rng(1).integers(0, 100, 20_000)})
    order = Order(("a",)).of(rows)
    now = written_bytes(rows)
    told = Packing(rows, 1.0, now / rows.num_rows, file_rows=20_000).share(order)
    assert told == pytest.approx(written_bytes(rows.take(order)) / now)


def test_rows_beyond_the_most_that_are_looked_at_change_nothing() -> None:
    rows = pa.table({"a": np.random.default_rng(1).integers(0, 1_000, 220_000)})
    told = Packing(rows, 1.0, float("inf"), file_rows=20_000).share(Order(("a",)).of(rows))
    half = rows.take(np.arange(0, rows.num_rows, 2))
    again = Packing(half, 0.5, float("inf"), file_rows=20_000).share(Order(("a",)).of(half))
    assert told == pytest.approx(again)


def test_no_rows_say_nothing() -> None:
    rows = pa.table({"a": pa.array([], pa.int64())})
    assert Packing(rows, 1.0, 0.0, file_rows=1).share(np.empty(0, np.int64)) == 1.0


@pytest.mark.parametrize(
    "values",
    [
        pa.array([None] * 4_000, pa.int32()),
        pa.array([None] * 4_000, pa.string()),
        pa.array([[n] for n in range(4_000)]),
        pa.array([{"a": n} for n in range(4_000)]),
        pa.array([float("nan"), float("inf"), -float("inf"), 0.5] * 1_000),
        pa.array([-float("inf"), *range(3_998), float("inf")], pa.float64()),
        pa.array([-(2**63), 2**63 - 1] * 2_000),
        pa.array([-(2**63), *range(3_998), 2**63 - 1]),
        pa.array([True, False, None, True] * 1_000),
        pa.array([b"\x00\xff", b"", None, b"\xff"] * 1_000),
        pa.array([str(n) * 100 for n in range(4_000)]),
        pa.array(["x", "y"] * 2_000).dictionary_encode(),
        pa.array(range(4_000), pa.decimal128(30, 2)),
        pa.array(range(4_000), pa.decimal128(7, 2)),
        pa.array([n.to_bytes(16, "big") for n in range(4_000)], pa.binary(16)),
        pa.array(range(4_000), pa.uint64()),
        pa.array(range(4_000), pa.time64("us")),
        pa.array(np.arange(4_000, dtype=np.float32)),
    ],
    ids=lambda values: str(values.type),
)
def test_columns_of_every_type_are_told(values: pa.Array) -> None:
    rows = pa.table({"a": values, "b": np.arange(4_000)})
    order = np.random.default_rng(3).permutation(4_000)
    assert 0 < Packing(rows, 0.01, 10.0, file_rows=5_000).share(order) < 100
