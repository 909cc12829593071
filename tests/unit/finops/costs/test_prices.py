"""The price book: what counts for whom and when, and what prices were before they changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from lakehouse_core.config.pricebook import PriceEntry, PricesConfig
from lakehouse_core.domain.list_prices import PUBLIC
from lakehouse_core.finops.prices import keep_prices, known_prices
from tests.factories import NOW

if TYPE_CHECKING:
    from lakehouse_core.config import Config
    from lakehouse_core.domain.pricebook import PriceBook
    from lakehouse_core.store.owner import OwnerStore

TYPES = {"trino": "trino", "athena": "athena", "snow": "snowflake", "duckdb": "duckdb"}


def prices(**given: Any) -> PricesConfig:
    section = PricesConfig.model_validate(given)
    section.know(TYPES)
    return section


def book(**given: Any) -> PriceBook:
    section = prices(**given)
    return section.book_of(section.all_prices(NOW))


def units(found: PriceBook, engine: str, at: datetime = NOW) -> dict[str, Decimal]:
    return {one.unit: one.effective_rate for one in found.compute(engine, at)}


def test_public_list_prices_fill_what_the_book_leaves_open() -> None:
    found = book()
    assert units(found, "athena") == {"tb_scanned": Decimal(5)}
    assert units(found, "duckdb") == {"core_hour": Decimal("0.0408")}
    assert units(found, "snow") == {"credit": Decimal(2)}
    assert units(book(editions={"snow": "enterprise"}), "snow") == {"credit": Decimal(3)}
    assert units(book(list_prices=False), "athena") == {}


def test_every_public_price_names_its_source_and_its_day() -> None:
    assert len({one.name for one in PUBLIC}) == len(PUBLIC)
    assert all(one.source and one.source_on.year >= 2026 and one.rate > 0 for one in PUBLIC)


def test_a_mix_with_spot_nodes_keeps_the_decimals_of_the_store(
    store: OwnerStore, demo_config: Config
) -> None:
    mix = {"unit": "node_hour", "nodes": 3, "list_price": "0.0816", "spot_price": "0.0291"}
    section = prices(book={"mix": mix | {"engine": "trino", "spot_share": 0.3333333333}})
    config = demo_config.model_copy(update={"prices": section})
    kept = units(keep_prices(store, config, NOW), "trino")
    assert kept == {"node_hour": Decimal("0.192300000005")}
    keep_prices(store, config, NOW + timedelta(days=1))  # says the same as the stored one
    rows = store.read("SELECT * FROM price WHERE name = 'mix'")
    assert rows.num_rows == 1


def test_the_most_particular_price_counts() -> None:
    found = book(
        book={
            "all": {"unit": "core_hour", "list_price": "1"},
            "trinos": {"engine_type": "trino", "unit": "cluster_hour", "list_price": "2"},
            "ours": {"engine": "trino", "unit": "node_hour", "nodes": 3, "list_price": "0.5"},
        }
    )
    assert units(found, "trino") == {"node_hour": Decimal("1.5")}
    assert units(found, "duckdb") == {"core_hour": Decimal(1)}
    assert units(found, "athena") == {"tb_scanned": Decimal(5)}  # of its type, though public


def test_spot_nodes_and_seconds_become_rates_per_hour() -> None:
    nodes = PriceEntry(
        unit="node_hour", nodes=4, list_price="0.2", spot_share=0.25, spot_price="0.08"
    ).as_price("n", "USD", NOW)
    assert nodes.effective_rate == Decimal("0.68")
    assert nodes.detail == "4 nodes at 0.2, 25% of them spot at 0.08"
    second = PriceEntry(unit="core_second", list_price="0.00001").as_price("s", "USD", NOW)
    assert (second.unit, second.effective_rate) == ("core_hour", Decimal("0.036"))


def test_contracted_and_effective_follow_the_list_price_until_they_are_given() -> None:
    plain = PriceEntry(unit="credit", list_price="3").as_price("c", "USD", NOW)
    agreed = PriceEntry(unit="credit", list_price="3", contracted="2.5").as_price("c", "USD", NOW)
    assert (plain.contracted_rate, plain.effective_rate) == (Decimal(3), Decimal(3))
    assert (agreed.contracted_rate, agreed.effective_rate) == (Decimal("2.5"), Decimal("2.5"))


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"unit": "credit", "list_price": "-1"}, "greater than or equal to 0"),
        ({"unit": "parsec", "list_price": "1"}, "cluster_hour"),
        ({"unit": "credit", "list_price": "1", "nodes": 2}, "only a node_hour has nodes"),
        ({"unit": "node_hour", "list_price": "1", "spot_share": 0.5}, "needs spot_price"),
        (
            {
                "unit": "credit",
                "list_price": "1",
                "valid_from": "2026-02-01",
                "valid_to": "2026-01-01",
            },
            "later than valid_from",
        ),
        ({"unit": "credit", "list_price": "1", "valid_from": "2026-02-01T10:00:00"}, "zone"),
        ({"unit": "credit", "list_price": "1", "valid_from": "soon"}, "a day or a time"),
        (
            {"unit": "credit", "list_price": "1", "engine": "a", "engine_type": "trino"},
            "either engine or engine_type",
        ),
    ],
)
def test_a_price_that_cannot_be_meant_is_refused(entry: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        PriceEntry.model_validate(entry)


def test_an_hour_in_which_the_price_changes_has_two_stretches() -> None:
    change = NOW + timedelta(minutes=20)
    found = book(
        book={
            "old": {
                "engine": "trino",
                "unit": "cluster_hour",
                "list_price": "1",
                "valid_to": change,
            },
            "new": {
                "engine": "trino",
                "unit": "cluster_hour",
                "list_price": "2",
                "valid_from": change,
            },
        }
    )
    stretches = list(found.stretches("trino", NOW, NOW + timedelta(hours=1)))
    assert [(s.end - s.start, s.prices[0].effective_rate) for s in stretches] == [
        (timedelta(minutes=20), Decimal(1)),
        (timedelta(minutes=40), Decimal(2)),
    ]


def with_book(config: Config, **entries: dict[str, Any]) -> Config:
    section = PricesConfig.model_validate({"book": entries})
    section.know({name: one.type for name, one in config.engines.items()})
    return config.model_copy(update={"prices": section})


def test_yesterday_keeps_its_price_when_today_is_dearer(
    store: OwnerStore, demo_config: Config
) -> None:
    cheap = with_book(demo_config, own={"engine": "trino", "unit": "credit", "list_price": "1"})
    dear = with_book(demo_config, own={"engine": "trino", "unit": "credit", "list_price": "2"})
    later = NOW + timedelta(hours=5, minutes=7)
    keep_prices(store, cheap, NOW)
    assert units(keep_prices(store, cheap, NOW), "trino", NOW) == {"credit": Decimal(1)}
    book = keep_prices(store, dear, later)
    assert units(book, "trino", later - timedelta(microseconds=1)) == {"credit": Decimal(1)}
    assert units(book, "trino", later) == {"credit": Decimal(2)}
    gone = keep_prices(store, with_book(demo_config), later + timedelta(hours=1))
    assert units(gone, "trino", later) == {"credit": Decimal(2)}
    assert units(gone, "trino", later + timedelta(hours=1)) == {"core_hour": Decimal("0.0408")}
    back = keep_prices(store, cheap, later + timedelta(hours=2))
    assert units(back, "trino", NOW) == {"credit": Decimal(1)}
    assert units(back, "trino", later) == {"credit": Decimal(2)}
    assert units(back, "trino", later + timedelta(hours=2)) == {"credit": Decimal(1)}


def test_a_price_with_a_start_of_its_own_counts_from_then(
    store: OwnerStore, demo_config: Config
) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    config = with_book(
        demo_config,
        own={"engine": "trino", "unit": "credit", "list_price": "1", "valid_from": "2026-01-01"},
    )
    book = keep_prices(store, config, NOW)
    assert units(book, "trino", start - timedelta(seconds=1)) == {"core_hour": Decimal("0.0408")}
    assert units(book, "trino", start) == {"credit": Decimal(1)}
    assert store.read("SELECT count(*) AS n FROM price").to_pylist() == [{"n": len(PUBLIC) + 1}]


def test_the_book_tells_which_price_counts_for_which_engine(
    store: OwnerStore, demo_config: Config
) -> None:
    keep_prices(store, demo_config, NOW)
    found = {p.name: engines for p, engines in known_prices(store, demo_config, NOW, history=False)}
    assert found["trino"] == ("trino",)
    assert found["public-core"] == ("duckdb",)
    assert found["public-athena"] == ()


def test_estimates_take_the_newest_price() -> None:
    section = prices(
        book={
            "scan": {"engine": "trino", "unit": "tb_scanned", "list_price": "6", "contracted": "4"}
        }
    )
    assert section.tb_scanned == {"trino": Decimal(4), "athena": Decimal(5)}
    assert (section.core_hour, section.gb_month) == (Decimal("0.0408"), Decimal("0.023"))
    assert prices(list_prices=False).core_hour is None
