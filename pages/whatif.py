"""What would change if …? Questions to what was measured; per month, with a range and n."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import streamlit as st

from lakehouse_core.views import formatting as f
from lakehouse_core.views.costs import CostFilters, cost_report
from lakehouse_core.views.whatif import (
    Answer,
    idle_shutdown,
    is_answered,
    maintenance_switched,
    price_change,
    template_elsewhere,
    why_not,
)
from pages.parts import cards, frame, menu, session
from pages.parts.text import plain

if TYPE_CHECKING:
    from lakehouse_core.finops.whatif import Change

QUESTIONS = ("An engine's price", "A template elsewhere", "Idle shutdown", "Maintenance")
COMMANDS = {
    QUESTIONS[0]: "price --engine NAME --percent -20",
    QUESTIONS[1]: "move --template ID --to NAME",
    QUESTIONS[2]: "idle --engine NAME --minutes 10",
    QUESTIONS[3]: "maintenance off",
}
HOW = """
From measured figures only; what was not measured often enough has no answer, and says why.

- **Price**: the engine's spend per day (or hour), times the change.
- **Template elsewhere**: the cost of a run on both engines, where it has run on both.
- **Idle shutdown**: the gaps between queries; what lies behind the minutes of patience is spared,
  each restart costs some minutes again.
- **Maintenance off**: the savings that were measured after each action, less what the actions cost.

`lakehelm cost whatif --help` asks the same.
"""


def tell(answer: Answer) -> None:
    st.subheader(plain(answer.question.capitalize()), anchor=False)
    if is_answered(answer):
        figures(answer)
    else:
        st.info(f"No answer: {plain(why_not(answer))}.", icon=":material/do_not_disturb_on:")


def figures(answer: Change) -> None:
    code = answer.currency
    first, second, third = st.columns(3)
    first.metric("Now, per month", f.money(answer.now, code), border=True)
    second.metric(
        "Change, per month",
        f.money(answer.expected, code, signed=True),
        delta=" to ".join(f.money(end, code, signed=True) for end in (answer.low, answer.high)),
        delta_color="off",
        delta_arrow="off",
        border=True,
    )
    third.metric("Rests on", f.count(answer.n), delta=answer.n_of, delta_color="off",
                 delta_arrow="off", border=True)  # fmt: skip
    frame.caption(f"How: {plain(answer.method)}.", "costs")
    for caveat in answer.caveats:
        st.caption(f":material/info: {plain(caveat)}")


def price(filters: CostFilters, engine: str) -> None:
    percent = st.slider("Change of the price, %", -90, 200, -20, key="whatif_percent")
    tell(session.read(price_change, filters, engine=engine, percent=Decimal(percent)))


def template(filters: CostFilters, engine: str) -> None:
    asked = CostFilters(window=filters.window)
    found = session.read(cost_report, asked, session.rules(), by=("template",), limit=100)
    names = [row.first for row in found.rows if row.queries and row.first != "unknown"]
    if not names:
        st.info("No template ran in this window.", icon=":material/search_off:")
        return
    chosen = st.selectbox("Template", names, key="whatif_template")
    tell(session.read(template_elsewhere, asked, template=chosen, to=engine))


def idle(filters: CostFilters, engine: str) -> None:
    minutes = st.slider("Shut down after idle minutes", 1, 120, 10, key="whatif_minutes")
    restart = st.slider("Minutes a start takes", 0, 15, 2, key="whatif_restart")
    tell(
        session.read(
            idle_shutdown,
            filters,
            engine=engine,
            minutes=minutes,
            restart_minutes=Decimal(restart),
        )
    )


def questions() -> str:
    """Ask one of them; says which."""
    bar = session.bar()
    asked, engine_box = st.columns([3, 1], vertical_alignment="bottom")
    question = asked.segmented_control(
        "What if …", QUESTIONS, default=QUESTIONS[0], key="whatif_question"
    )
    question = question or QUESTIONS[0]
    if question == QUESTIONS[3]:
        wanted = st.segmented_control(
            "Maintenance", ("off", "on"), default="off", key="whatif_care"
        )
        tell(session.read(maintenance_switched, to=wanted or "off"))
        return question
    engines = sorted(session.config().engines)
    if not engines:
        frame.empty("No engine is configured", "Add one to the configuration.",
                    "lakehelm config validate")  # fmt: skip
        return question
    index = engines.index(bar.engine) if bar.engine in engines else len(engines) - 1
    label = "On engine" if question == QUESTIONS[1] else "Engine"
    engine = engine_box.selectbox(label, engines, index=index, key="whatif_engine")
    filters = CostFilters(window=bar.window)
    parts = {QUESTIONS[0]: price, QUESTIONS[1]: template, QUESTIONS[2]: idle}
    parts[question](filters, engine)
    return question


menu.enter()
frame.lead("What would change if …?", "costs")
asked = questions()
cards.how(HOW)
st.caption(f"From the command line: `lakehelm cost whatif {COMMANDS[asked]} --json`")
