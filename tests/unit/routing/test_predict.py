"""The router's predictor: promises first, then evidence, else silence; tries within a budget."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from lakehouse_core.domain.errors import ModelUnreadableError
from lakehouse_core.domain.query import EngineId, StatementKind, TemplateId
from lakehouse_core.routing import predict_file
from lakehouse_core.routing.features import FeatureSpace, ScanFacts
from lakehouse_core.routing.predict import Conscience, LearningPredictor, crowding
from lakehouse_core.routing.predict_choice import Choice, RoutePolicy
from lakehouse_core.routing.predict_explore import Budget, Explorer, Lot
from lakehouse_core.routing.predict_history import History
from lakehouse_core.routing.predict_training import Trained, train
from lakehouse_core.routing.profiles import Memory, ProfileBook, Run, in_seconds
from lakehouse_core.routing.profiles_wear import wear_of
from lakehouse_core.routing.request import (
    Candidate,
    Preference,
    Request,
    ScanEstimate,
    StatementFacts,
    Terms,
)
from lakehouse_core.sql import Inspector

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 3, 1, tzinfo=UTC)
SQL = "SELECT a FROM lake.demo.t WHERE x = 5"
INSPECTOR = Inspector()
TEMPLATE = INSPECTOR.fingerprint(SQL, "trino").template_id
FACTS = StatementFacts(TemplateId(TEMPLATE), StatementKind.SELECT, ("lake.demo.t",))
CANDIDATES = [
    Candidate(name, EngineId(name), "any", "trino", 0, None)
    for name in ("duckdb", "trino", "spark")
]
PRICES = {"duckdb": 1.0, "trino": 3.0, "spark": 2.0}
_COLUMNS = ("template", "matrix", "size", "values")
NO_TRIES = Conscience(budget=Budget(share=0.0))


def book_of(**seconds: float) -> ProfileBook:
    book = ProfileBook()
    for engine, one in seconds.items():
        for number in range(6):
            book.record(Run(TEMPLATE, engine, NOW, one * (1 + 0.01 * number)))
    return book


def ask(book: ProfileBook, objective: Any = "latency", **options: Any) -> Preference:
    options.setdefault("conscience", NO_TRIES)
    gateway_id = options.pop("gateway_id", "")
    promise = options.pop("promise", None)
    terms = None if promise is None else Terms(latency_seconds=promise)
    candidates = options.pop("candidates", CANDIDATES)
    predictor = LearningPredictor(
        book,
        valuations={
            "latency": in_seconds,
            "cost": lambda engine, seconds, _: seconds * PRICES[engine],
        },
        inspector=INSPECTOR,
        clock=lambda: NOW,
        **options,
    )
    request = Request(sql=SQL, dialect="trino", gateway_id=gateway_id)
    return predictor.choose(objective, request, FACTS, candidates, terms)


def test_the_engine_that_was_quicker_is_taken() -> None:
    found = ask(book_of(duckdb=4.0, trino=1.0, spark=9.0))
    assert found.engine_id == "trino"
    assert "runs" in found.reason


def test_cheap_is_another_matter_than_quick() -> None:
    assert ask(book_of(duckdb=2.0, trino=1.0), "cost").engine_id == "duckdb"


def test_without_evidence_it_abstains() -> None:
    found = ask(ProfileBook())
    assert found.engine_id is None
    assert found.reason


def test_too_few_runs_are_no_evidence() -> None:
    book = book_of(duckdb=4.0)
    book.record(Run(TEMPLATE, "trino", NOW, 0.1))
    assert ask(book).engine_id != "trino"


def test_a_small_difference_is_left_alone() -> None:
    assert ask(book_of(duckdb=1.0, trino=0.97)).engine_id != "trino"


def test_throughput_is_not_predicted() -> None:
    assert ask(book_of(duckdb=4.0, trino=1.0), "throughput").engine_id is None


def test_the_cheapest_that_keeps_the_promise_is_taken() -> None:
    book = book_of(duckdb=8.0, trino=3.0, spark=2.0)
    assert ask(book, "cost").engine_id == "spark"
    assert ask(book, "cost", promise=3.5).engine_id == "spark"
    prices_apart = book_of(duckdb=2.0, trino=1.0)
    assert ask(prices_apart, "cost").engine_id == "duckdb"
    assert ask(prices_apart, "cost", promise=1.5).engine_id == "trino"


def test_when_none_keeps_the_promise_the_nearest_is_taken() -> None:
    found = ask(book_of(duckdb=9.0, trino=5.0), "cost", promise=1.0)
    assert found.engine_id == "trino"
    assert "none keeps 1 s" in found.reason


def test_tries_stay_within_their_share_and_never_touch_a_promise() -> None:
    book = book_of(duckdb=2.0, trino=1.0)
    eager = Conscience(budget=Budget(share=0.1, worth=1.0))
    asked = [f"gateway-{number}" for number in range(400)]

    def is_tried(one: str) -> bool:
        return ask(book, conscience=eager, gateway_id=one).engine_id == "spark"

    tried = [one for one in asked if is_tried(one)]
    assert 0 < len(tried) <= 0.16 * len(asked)
    kept = [ask(book, conscience=eager, gateway_id=one, promise=9.0) for one in tried]
    assert all(one.engine_id == "trino" for one in kept)
    # A preview has no id, and what has an id is always answered alike.
    assert ask(book, conscience=eager).engine_id == "trino"
    assert all(is_tried(one) for one in tried)


def test_a_budget_of_nothing_tries_nothing() -> None:
    book = book_of(duckdb=2.0, trino=1.0)
    poor = Conscience(budget=Budget(share=0.5, worth=0.0))
    found = {ask(book, conscience=poor, gateway_id=str(number)).engine_id for number in range(50)}
    assert found == {"trino"}


def test_where_engines_are_alike_one_that_is_known_takes_it() -> None:
    """Not whichever speaks the client's dialect: nothing is known of that one."""
    found = ask(book_of(duckdb=1.0, trino=0.97))
    assert found.engine_id == "duckdb"
    assert "no engine is better" in found.reason


def test_the_runs_are_named() -> None:
    book = ProfileBook()
    for number in range(6):
        book.record(Run(TEMPLATE, "duckdb", NOW, 4.0, name=f"d{number}"))
        book.record(Run(TEMPLATE, "trino", NOW, 1.0, name=f"t{number}"))
    reason = ask(book).reason
    assert "duckdb 6 (d5, d4, d3, …)" in reason
    assert "trino 6 (t5, t4, t3, …)" in reason


def test_with_a_model_silence_means_its_default() -> None:
    space, past = history(8, seed=1)  # too little for a rule
    renamed = History(("trino", "duckdb"), *(getattr(past, name) for name in _COLUMNS))
    trained = Trained(renamed.engines, space, train(renamed))
    default = trained.engines[trained.learned.default]
    found = ask(
        ProfileBook(), trained={"latency": trained}, candidates=[CANDIDATES[0], CANDIDATES[1]]
    )
    assert found.engine_id == default


def test_one_engine_that_keeps_the_promise_is_said_to() -> None:
    found = ask(book_of(duckdb=2.0, trino=1.0), promise=1.5)
    assert found.engine_id == "trino"
    assert found.reason == "only trino is known to take at most 1.5 s (95th percentile)"


class Scans:
    """Says that a statement reads so much."""

    def __init__(self, size: int | None, files: int = 1) -> None:
        self.found = ScanEstimate(bytes=size, files=files)

    def estimate(self, request: Request, facts: StatementFacts) -> ScanEstimate:
        del request, facts
        return self.found


def test_a_promise_is_held_against_scans_of_the_same_size() -> None:
    """A year took 9 s, which says nothing about a day."""
    book = ProfileBook()
    for _ in range(6):
        for engine, day in (("duckdb", 1.0), ("trino", 1.2)):
            book.record(Run(TEMPLATE, engine, NOW, 9.0, estimated_bytes=2.0**35))
            book.record(Run(TEMPLATE, engine, NOW, day, estimated_bytes=2.0**20))
    found = ask(book, promise=2.0, estimator=Scans(2**20))
    assert found.engine_id == "duckdb"
    assert found.reason.endswith("within 2 s")
    assert "none keeps" in ask(book, promise=2.0, estimator=Scans(2**35)).reason


def test_a_statement_that_waits_is_booked_once() -> None:
    book = book_of(duckdb=2.0, trino=1.0)
    explorer = Explorer()
    choice = Choice("trino", "profile", 0.5, 6.0, "")
    profiles = book.profiles_of(TEMPLATE, in_seconds, NOW)
    budget = Budget(share=1.0, worth=1.0)
    assert explorer.pick(Lot("first", "group", budget), ("spark", "trino"), choice, profiles)
    for _ in range(50):
        assert explorer.pick(Lot("second", "group", budget), ("spark", "trino"), choice, profiles)
    # A try is worth as much again as the choice: the budget is used up to the last.
    assert explorer.spent("group") == pytest.approx(2 * 1.02, rel=0.05)


# --- load and tables ---------------------------------------------------------------------------


def crowded(**running: int) -> list[Candidate]:
    return [
        Candidate(name, EngineId(name), "any", "trino", running.get(name, 0), 4)
        for name in ("duckdb", "trino")
    ]


def test_an_engine_near_its_limit_is_left_for_another() -> None:
    book = book_of(duckdb=1.4, trino=1.0)
    assert ask(book, candidates=crowded()).engine_id == "trino"
    found = ask(book, candidates=crowded(trino=4))
    assert found.engine_id == "duckdb"
    assert "trino counts 2.2 times" in found.reason


def test_who_waits_counts_as_time() -> None:
    full = Candidate("trino", EngineId("trino"), "any", "trino", 4, 4)
    queued = Candidate("trino", EngineId("trino"), "any", "trino", 4, 4, waiting=8)
    assert crowding(Candidate("a", EngineId("a"), "any", "trino", 0, None)) == 1.0
    assert 2.0 < crowding(full) < crowding(queued) == 2.0 + 9 / 4


def test_a_load_breaks_the_promise() -> None:
    book = book_of(duckdb=1.8, trino=1.0)
    found = ask(book, promise=1.9, candidates=crowded(trino=4))
    assert found.engine_id == "duckdb"


def test_a_fragmented_table_drives_work_away_and_a_compaction_brings_it_back() -> None:
    book, size = ProfileBook(Memory(fresh_seconds=0)), 2**27
    files = {"good": 1, "worn": 4_000}
    seconds = {("trino", "good"): 1.0, ("trino", "worn"): 8.0}  # DuckDB does not mind
    now = [NOW]

    def run(engine: str, condition: str) -> None:
        now[0] += timedelta(minutes=1)
        wear = wear_of(files[condition], size)
        took = seconds.get((engine, condition), 3.0)
        book.record(Run(TEMPLATE, engine, now[0], took, None, False, float(size), wear))

    def chosen(condition: str) -> str | None:
        scans = Scans(size, files[condition])
        return ask(book, estimator=scans, candidates=crowded()).engine_id

    for _ in range(8):
        run("trino", "good")
        run("duckdb", "good")
    assert chosen("good") == "trino"
    ran_on = []
    for _ in range(12):
        ran_on.append(chosen("worn"))
        run(str(ran_on[-1]), "worn")
    assert ran_on[-1] == "duckdb"
    assert ran_on.count("trino") <= 6
    assert chosen("good") == "trino"  # compacted: without one new run there


# --- the model ---------------------------------------------------------------------------------


def history(rows: int = 60, *, engines: int = 2, seed: int = 0) -> tuple[FeatureSpace, History]:
    """Small scans are quicker on the first engine, large ones on the second."""
    rng = np.random.default_rng(seed)
    sizes = rng.uniform(10, 30, rows)
    space = FeatureSpace()
    shape = INSPECTOR.shape(SQL, "trino")
    matrix = space.matrix([shape] * rows, [ScanFacts(bytes=2.0**one) for one in sizes])
    first = np.exp((sizes - 20) / 3)
    values = np.stack([first, np.ones(rows)], axis=1)[:, :engines] * np.exp(
        rng.normal(0, 0.05, (rows, engines))
    )
    template = np.arange(rows, dtype=np.int64)
    return space, History(("small", "large")[:engines], template, matrix, sizes, values)


def policy(rows: int = 60, **more: Any) -> RoutePolicy:
    space, past = history(rows, **more)
    return RoutePolicy(past.engines, space, train(past), lambda _: None)


@pytest.mark.slow
def test_the_model_finds_where_engines_cross() -> None:
    found = policy()
    shape = INSPECTOR.shape("SELECT b FROM u", "trino")
    assert found.choose(shape, ScanFacts(bytes=2.0**12)).engine == "small"
    assert found.choose(shape, ScanFacts(bytes=2.0**28)).engine == "large"


@pytest.mark.parametrize(("rows", "engines"), [(3, 2), (60, 1)])
def test_little_data_teaches_nothing(rows: int, engines: int) -> None:
    found = policy(rows, engines=engines)
    choice = found.choose(INSPECTOR.shape("SELECT b FROM u", "trino"), ScanFacts(bytes=2.0**12))
    assert choice.basis in ("abstained", "only_one")
    assert choice.engine == found.default


@pytest.mark.slow
def test_an_engine_that_never_ran_is_not_relied_on() -> None:
    space, past = history()
    unknown = np.full((60, 1), np.nan)
    wider = History(
        ("small", "large", "new"),
        past.template,
        past.matrix,
        past.size,
        np.hstack([past.values, unknown]),
    )
    found = RoutePolicy(wider.engines, space, train(wider), lambda _: None)
    shape = INSPECTOR.shape("SELECT b FROM u", "trino")
    chosen = {found.choose(shape, ScanFacts(bytes=2.0**size)).engine for size in range(8, 32, 2)}
    assert chosen == {"small", "large"}
    assert found.choose(shape, ScanFacts(), ["new"]).engine == "new"


@pytest.mark.slow
def test_an_engine_that_cannot_take_it_is_never_chosen() -> None:
    found = policy()
    shape = INSPECTOR.shape("SELECT b FROM u", "trino")
    for size in (2.0**12, 2.0**28):
        assert found.choose(shape, ScanFacts(bytes=size), ["large"]).engine == "large"
    with pytest.raises(ValueError, match="no engine"):
        found.choose(shape, ScanFacts(), ["unheard of"])


@pytest.mark.slow
def test_a_stored_model_answers_alike(tmp_path: Path) -> None:
    space, past = history()
    trained = Trained(past.engines, space, train(past))
    path = tmp_path / "models" / "latency.npz"
    predict_file.save(path, trained)
    again = predict_file.load(path)
    shape = INSPECTOR.shape("SELECT b FROM u", "trino")
    for size in (2.0**12, 2.0**19, 2.0**28):
        first, second = (
            RoutePolicy(one.engines, one.space, one.learned, lambda _: None).choose(
                shape, ScanFacts(bytes=size)
            )
            for one in (trained, again)
        )
        assert first == second


def test_a_broken_model_is_named(tmp_path: Path) -> None:
    path = tmp_path / "latency.npz"
    path.write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(ModelUnreadableError, match=r"latency\.npz"):
        predict_file.load(path)
    with pytest.raises(ModelUnreadableError, match=r"gone\.npz"):
        predict_file.load(tmp_path / "gone.npz")
