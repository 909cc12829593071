"""What each person does on the running demo, in Chromium: analyst, platform engineer, FinOps.

`make loops`, some minutes after `make run`: engines are switched and tables compacted there. What
FinOps asks in the end is answered from whole hours: that walk needs one behind it.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import subprocess
import sys
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
import trino
from playwright.sync_api import TimeoutError as NotYet
from playwright.sync_api import expect

from tests.e2e.browser import PATIENCE_MS, Visit, chromium, switch_engine
from tests.e2e.stack import COLLECTED_SECONDS, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

pytestmark = [pytest.mark.stack, pytest.mark.browser, pytest.mark.timeout(900)]
expect.set_options(timeout=PATIENCE_MS)

COUNTED = "SELECT kind, count(*) AS events FROM lake.demo.events GROUP BY kind ORDER BY kind"
ENDLESS = (
    "SELECT sum(a.l_quantity * b.l_quantity * c.l_quantity) FROM lake.demo.lineitem a "
    "CROSS JOIN lake.demo.lineitem b CROSS JOIN lake.demo.lineitem c"
)
OF_SUPPLIER = "SELECT * FROM lake.demo.lineitem WHERE l_suppkey = {}"
PROVEN_SECONDS = 600.0
LAYOUT_RUNS = 300  # of each engine: enough to outweigh what the demo's people ask of the table
DRAWN_MS, CHOSEN_SECONDS = 4_000, 60.0


@pytest.fixture(scope="module")
def ui_url() -> str:
    return os.environ["LAKEHELM_UI_URL"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


def choose_row(visit: Visit) -> None:
    """Choose the first row of the first grid: a canvas, which tells readers of screens the rest."""
    visit.settle()
    grid = visit.page.locator('[data-testid="stDataFrame"]').first
    chosen = grid.locator('tr[aria-selected="true"]').first

    def is_chosen() -> bool:
        box = grid.bounding_box()
        assert box is not None
        visit.page.mouse.click(box["x"] + 18, box["y"] + 52)
        with contextlib.suppress(NotYet):  # it is drawn after the script has ended
            chosen.wait_for(state="attached", timeout=DRAWN_MS)
            return True
        return False

    wait_for("the first row to be chosen", is_chosen, CHOSEN_SECONDS)


def pick(visit: Visit, label: str, option: str) -> None:
    visit.page.get_by_role("combobox", name=label).click()
    visit.page.get_by_role("option", name=option, exact=True).click()
    visit.settle()


def engine_of(visit: Visit, sql: str) -> str:
    """Which engine the console says would answer."""
    visit.page.get_by_role("textbox", name="SQL in Trino's dialect").fill(sql)
    visit.page.get_by_role("button", name="Explain").click()
    expect(visit.page.get_by_text("Why: ").first).to_be_visible()
    visit.settle()
    main = visit.page.locator("[data-testid=stMain]").inner_text()
    found = re.search(r"\bEngine\s+(duckdb|spark|trino|none)\b", main)
    assert found, main
    return found[1]


def test_an_analyst_explains_runs_on_two_engines_downloads_and_cancels(
    browser: Browser, ui_url: str
) -> None:
    visit = Visit(browser, ui_url)
    visit.open("console")
    answered = visit.page.get_by_text(re.compile(r"^\d+ rows, "))
    for engine in ("duckdb", "trino"):
        pick(visit, "Where", f"engine {engine}")
        assert engine_of(visit, COUNTED) == engine
        visit.page.get_by_role("textbox", name="SQL in Trino's dialect").press("Control+Enter")
        expect(answered).to_be_visible()
        with visit.page.expect_download() as download:
            visit.page.get_by_role("button", name="Download CSV").click()
        assert download.value.path().read_text().splitlines()[0] == "kind,events"
    visit.page.get_by_role("textbox", name="SQL in Trino's dialect").fill(ENDLESS)
    visit.page.get_by_role("textbox", name="SQL in Trino's dialect").press("Control+Enter")
    visit.page.get_by_role("button", name="Cancel").click()
    expect(visit.page.get_by_text("Cancelled: no rows were kept.")).to_be_visible()
    assert visit.error_boxes() == []
    assert visit.problems == []


def test_traffic_moves_while_an_engine_is_in_maintenance(browser: Browser, ui_url: str) -> None:
    console, engines = Visit(browser, ui_url), Visit(browser, ui_url)
    console.open("console")
    pick(console, "Where", "group interactive")
    before = engine_of(console, COUNTED)
    engines.open(f"engines?engine={before}")
    switch_engine(engines, "Maintenance", f"{before} is maintenance now")
    try:
        moved = wait_for(
            "the traffic to move",
            lambda: (now := engine_of(console, COUNTED)) != before and now,
            60,
        )
        assert moved != "none"
        console.page.get_by_role("textbox", name="SQL in Trino's dialect").press("Control+Enter")
        expect(console.page.get_by_text(re.compile(r"^\d+ rows, "))).to_be_visible()
    finally:
        switch_engine(engines, "Active", f"{before} is active now")
    wait_for("it to be asked again", lambda: engine_of(console, COUNTED) == before, 60)
    assert console.error_boxes() == engines.error_boxes() == []


def test_a_proposal_is_approved_watched_and_proven(browser: Browser, ui_url: str) -> None:
    visit = Visit(browser, ui_url)

    def at_work() -> str:
        visit.open("maintenance")
        return visit.page.locator("[data-testid=stMain]").inner_text()

    def proven(main: str) -> int:
        counts = re.search(r"Proven, of those shown\s+(\d+)", main)
        return int(counts[1]) if counts else 0

    def is_proposed() -> bool:
        visit.open("recommendations")
        return bool(visit.page.get_by_text("Waiting for a decision, now").count())

    before = proven(at_work())
    wait_for("a proposal", is_proposed, COLLECTED_SECONDS)
    choose_row(visit)
    expect(visit.page.get_by_text("What is done, exactly?")).to_be_visible()
    visit.page.get_by_role("textbox", name="Your name").first.fill("ana")
    visit.page.get_by_role("textbox", name="Your name").first.press("Enter")
    visit.page.get_by_role("button", name="Approve").first.click()
    expect(visit.page.get_by_text("Approved by ana").first).to_be_visible()
    seen = set()

    def is_over() -> bool:
        main = at_work()
        seen.update(re.findall(r"\b(running|approved|scheduled|verifying)\b", main))
        return proven(main) > before and "Nothing runs." in main

    wait_for("the proof", is_over, PROVEN_SECONDS)
    assert seen, "it was never seen at work"
    choose_row(visit)
    expect(visit.page.get_by_text("What was predicted, what became true?")).to_be_visible()
    assert visit.error_boxes() == []
    assert visit.problems == []


def ask(*words: str) -> Any:
    """What the command line answers with `--json`."""
    command = [str(Path(sys.executable).with_name("lakehelm")), *words, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def filter_on_two_engines(runs: int) -> None:
    """DuckDB asks for the rows of days, Trino for those of suppliers, both through the gateway."""
    lot = random.Random(7)  # noqa: S311 literals
    with psycopg.connect(
        "host=127.0.0.1 port=8096 dbname=lake user=finn", autocommit=True
    ) as postgres:
        postgres.execute("SET lakehelm.engine = 'duckdb'")
        for _ in range(runs):
            day = date(1992, 3, 1) + timedelta(days=lot.randrange(2_300))
            postgres.execute(
                "SELECT * FROM lake.demo.lineitem WHERE l_shipdate >= %s AND l_shipdate < %s",
                (day, day + timedelta(days=2)),
            ).fetchall()
    headers = {"X-Lakehelm-Engine": "trino"}
    connect: Any = trino.dbapi.connect  # has no types
    with closing(
        connect(host="127.0.0.1", port=8095, user="tess", http_headers=headers)
    ) as connection:
        cursor = connection.cursor()
        for _ in range(runs):
            cursor.execute(OF_SUPPLIER.format(lot.randrange(1, 1_001)))
            cursor.fetchall()


def test_a_layout_that_serves_two_engines_is_advised_approved_and_proven(
    browser: Browser, ui_url: str
) -> None:
    visit = Visit(browser, ui_url)
    table = "lake.demo.lineitem"
    filter_on_two_engines(LAYOUT_RUNS)

    def is_advised() -> bool:
        """Collected, and understood from both engines' texts."""
        advice = ask("layout", "advise", table)
        return {"l_suppkey", "l_shipdate"} <= set(re.findall(r"\w+", advice["layout"] or ""))

    wait_for("advice that serves both engines", is_advised, COLLECTED_SECONDS)

    def open_layout() -> str:
        visit.open(f"tables?table={table}")
        visit.page.get_by_role("tab", name="Layout").click()
        visit.settle()
        return visit.page.locator("[data-testid=stMain]").inner_text()

    wait_for("its proposal", lambda: "Its proposal (proposed)" in open_layout(), COLLECTED_SECONDS)
    visit.follow("Its proposal (proposed)")
    visit.page.get_by_role("textbox", name="Your name").first.fill("ana")
    visit.page.get_by_role("textbox", name="Your name").first.press("Enter")
    visit.page.get_by_role("button", name="Approve").first.click()
    expect(visit.page.get_by_text("Approved by ana").first).to_be_visible()
    wait_for("the proof", lambda: "What did it bring?" in open_layout(), PROVEN_SECONDS)
    proof = ask("layout", "show", table)["proof"]
    for engine in ("duckdb", "trino"):  # each of them reads less of what it asks for most
        most = max(
            (one for one in proof if one["engine_id"] == engine), key=lambda one: one["runs"]
        )
        assert most["bytes_after"] < 0.7 * most["bytes_before"], most
    assert visit.error_boxes() == []
    assert visit.problems == []


def test_finops_finds_cost_cause_and_a_way_out_in_four_clicks(
    browser: Browser, ui_url: str
) -> None:
    visit = Visit(browser, ui_url)

    def is_metered() -> bool:
        visit.open("costs?window=7d")
        return bool(visit.page.get_by_text("Reconciliation:").count())

    wait_for("metered hours", is_metered, COLLECTED_SECONDS)
    expect(visit.page.get_by_text(re.compile(r"difference 0\.0+ USD"))).to_be_visible()
    choose_row(visit)  # 1: the dearest engine, by workload
    expect(visit.page.get_by_text("What does each workload cost over time?")).to_be_visible()
    choose_row(visit)  # 2: the dearest workload, by user
    expect(visit.page.get_by_text("What does each user cost over time?")).to_be_visible()
    visit.follow("What if")  # 3
    visit.page.get_by_text("Idle shutdown", exact=True).click()  # 4
    expect(visit.page.get_by_text("Change, per month")).to_be_visible()
    assert visit.error_boxes() == []
    assert visit.problems == []
