"""Every page in Chromium. With LAKEHELM_UI_URL the first tests look at a product that runs."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.e2e.browser import PATIENCE_MS, Visit, check_every_page, chromium, switch_engine
from tests.e2e.site import Site
from tests.e2e.stack import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Locator

    from tests.e2e.browser import Theme

pytestmark = pytest.mark.browser
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def ui_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    given = os.environ.get("LAKEHELM_UI_URL")
    if given:
        yield given
        return
    with Site(tmp_path_factory.mktemp("site")) as site:
        site.start_owner()
        site.start_pages()
        yield site.url


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_page_opens_without_an_error_box(browser: Browser, ui_url: str, theme: Theme) -> None:
    check_every_page(browser, ui_url, theme)


def test_both_themes_have_their_own_background(browser: Browser, ui_url: str) -> None:
    seen = set()
    for theme in ("light", "dark"):
        visit = Visit(browser, ui_url, theme)
        visit.open("settings")
        style = "e => getComputedStyle(e).backgroundColor"
        seen.add(visit.page.locator('[data-testid="stApp"]').evaluate(style))
    assert seen == {"rgb(255, 255, 255)", "rgb(20, 24, 31)"}


def test_filters_live_in_the_address_and_go_along(browser: Browser, ui_url: str) -> None:
    visit = Visit(browser, ui_url)
    visit.open("?window=7d")
    visit.follow("Query history")
    expect(visit.page.get_by_text("Queries, last 7 days")).to_be_visible()
    assert visit.page.url.endswith("/query_history?window=7d")
    visit.page.get_by_role("combobox", name="Window").click()
    visit.page.get_by_role("option", name="1h", exact=True).click()
    expect(visit.page.get_by_text("Queries, last hour")).to_be_visible()
    assert "window=1h" in visit.page.url


def test_click_on_a_table_shows_its_detail_and_can_be_linked_to(
    browser: Browser, ui_url: str
) -> None:
    visit = Visit(browser, ui_url)
    visit.open("tables")
    box = visit.page.locator('[data-testid="stDataFrame"]').first.bounding_box()
    assert box is not None
    # The grid is a canvas: the box of the first row is below the header.
    visit.page.mouse.click(box["x"] + 18, box["y"] + 52)
    expect(visit.page.get_by_text("How large are its files?")).to_be_visible()
    assert "table=" in visit.page.url
    again = Visit(browser, ui_url)
    again.page.goto(visit.page.url)
    expect(again.page.get_by_text("How large are its files?")).to_be_visible()


def test_a_job_is_run_from_its_page_and_tells_how_far_it_is(browser: Browser, ui_url: str) -> None:
    visit = Visit(browser, ui_url)
    visit.open("agents")
    visit.page.get_by_role("button", name="Run now").click()
    expect(visit.page.get_by_text("Asked for collect")).to_be_visible()
    expect(visit.page.get_by_role("progressbar").first).to_be_visible()
    expect(visit.page.get_by_text("ended: ok").first).to_be_visible()
    assert visit.error_boxes() == []
    assert visit.problems == []


def test_a_recommendation_is_approved_on_its_page(browser: Browser, ui_url: str) -> None:
    visit = Visit(browser, ui_url)
    visit.open("recommendations")
    box = visit.page.locator('[data-testid="stDataFrame"]').first.bounding_box()
    assert box is not None
    visit.page.mouse.click(box["x"] + 18, box["y"] + 52)
    expect(visit.page.get_by_text("What is done, exactly?")).to_be_visible()
    approve = visit.page.get_by_role("button", name="Approve")
    expect(approve).to_be_disabled()
    visit.page.get_by_role("textbox", name="Your name").fill("ana")
    visit.page.get_by_role("textbox", name="Your name").press("Enter")
    expect(approve).to_be_enabled()
    approve.click()
    expect(visit.page.get_by_text("Approved by ana")).to_be_visible()
    expect(visit.page.get_by_text("Decided by ana")).to_be_visible()
    assert visit.error_boxes() == []
    assert visit.problems == []


def test_an_analyst_explains_runs_cancels_and_downloads(browser: Browser, ui_url: str) -> None:
    if os.environ.get("LAKEHELM_UI_URL"):
        pytest.skip("its lake has other tables")
    visit = Visit(browser, ui_url)
    visit.open("console")
    text = visit.page.get_by_role("textbox", name="SQL in Trino's dialect")
    text.fill("SELECT kind, count(*) AS orders FROM lake.shop.orders GROUP BY kind")
    visit.page.get_by_role("button", name="Explain").click()
    expect(visit.page.get_by_text("Why: routingFallback")).to_be_visible()
    answered = visit.page.get_by_text(re.compile(r"^3 rows, "))  # and how long it took
    expect(answered).to_have_count(0)  # explained, not run
    text.press("Control+Enter")
    expect(answered).to_be_visible()
    with visit.page.expect_download() as download:
        visit.page.get_by_role("button", name="Download CSV").click()
    assert download.value.path().read_text().splitlines()[0] == "kind,orders"
    text.fill(
        "SELECT sum(a.price * b.price * c.price) FROM lake.shop.orders a "
        "CROSS JOIN lake.shop.orders b CROSS JOIN lake.shop.orders c"
    )
    text.press("Control+Enter")
    visit.page.get_by_role("button", name="Cancel").click()
    expect(visit.page.get_by_text("Cancelled: no rows were kept.")).to_be_visible()
    assert visit.error_boxes() == []
    assert visit.problems == []


def test_an_engine_in_maintenance_gets_nothing(browser: Browser, ui_url: str) -> None:
    if os.environ.get("LAKEHELM_UI_URL"):
        pytest.skip("nobody's engine is switched here")
    visit = Visit(browser, ui_url)
    visit.open("engines?engine=duckdb")
    for state, badge in (("Maintenance", "duckdb is maintenance now"), ("Active", "is active now")):
        switch_engine(visit, state, badge)
        if state == "Maintenance":
            routing = Visit(browser, ui_url)
            routing.open("routing")
            routing.page.get_by_role("textbox", name="SQL").fill("SELECT 1")
            refused = routing.page.get_by_text("It would not run")

            def is_told(page: Visit = routing, told: Locator = refused) -> bool:
                page.page.get_by_role("button", name="Explain").click()
                page.settle()
                return bool(told.count())

            wait_for("the gateway to notice", is_told, 60)
    assert visit.error_boxes() == []


def test_a_template_leads_to_its_queries_and_back(browser: Browser, ui_url: str) -> None:
    visit = Visit(browser, ui_url)
    visit.open("workloads?window=7d&template=template-1")
    expect(visit.page.get_by_text("How does it run on each engine?")).to_be_visible()
    visit.page.get_by_role("link", name="queries").last.click()
    expect(visit.page.get_by_text("Only template template-1")).to_be_visible()
    visit.page.get_by_role("button", name="Show all templates").click()
    expect(visit.page.get_by_text("Only template")).to_have_count(0)
    assert visit.error_boxes() == []


def test_engine_nobody_knows_in_the_address_is_told(browser: Browser, ui_url: str) -> None:
    visit = Visit(browser, ui_url)
    visit.open("query_history?engine=trinoo")
    expect(visit.page.get_by_text("Known are: ")).to_be_visible()


def test_first_visitor_may_open_any_page_directly(browser: Browser, tmp_path: Path) -> None:
    with Site(tmp_path) as site:
        site.start_owner()
        site.start_pages()
        visit = Visit(browser, site.url)
        visit.open("engines")
        expect(visit.page.locator("h1")).to_have_text("Engines")
        assert visit.error_boxes() == []


def test_pages_say_that_the_store_is_away_and_come_back_by_themselves(
    browser: Browser, tmp_path: Path
) -> None:
    with Site(tmp_path) as site:
        site.start_owner()
        site.start_pages()
        visit = Visit(browser, site.url)
        visit.open("tables")
        site.stop_owner()
        away = visit.page.get_by_text("The telemetry store does not answer")

        def is_told() -> bool:
            visit.open("tables")  # figures of the last seconds are shown from memory
            return bool(away.count())

        wait_for("the pages to notice", is_told, 60)
        expect(visit.page.get_by_text("lakehelm up", exact=True)).to_be_visible()
        site.start_owner()
        expect(visit.page.get_by_text("Critical tables")).to_be_visible()
        assert visit.error_boxes() == []
