"""Beside the editor: the lake's names, saved queries, and what the visitor ran before."""

from __future__ import annotations

import streamlit as st

from lakehouse_core.domain.errors import LakehouseError
from lakehouse_core.views import formatting as f
from lakehouse_core.views.console import (
    LONGEST_NAME,
    NAMES_SQL,
    LakeTable,
    drop_query,
    lake_tables,
    own_statements,
    save_query,
    saved_queries,
)
from lakehouse_core.views.gateway import GatewayAwayError
from lakehouse_core.views.statements import Connection, Limits, Run
from pages.parts import cells, choice, console_state, frame, session
from pages.parts.text import plain

MOST_TABLES = 60
_NAMES_SECONDS = 20.0
_TOLD = "console_saved_told"


@st.cache_data(ttl=30, max_entries=16, show_spinner=False)
def _tables(url: str, user: str, catalog: str, _way: Connection) -> tuple[LakeTable, ...]:
    del url, user  # the key of the cache
    quoted = '"' + catalog.replace('"', '""') + '"'
    run = Run(_way, NAMES_SQL.replace("{catalog}", quoted), Limits(rows=50_000)).start()
    seen = run.wait(_NAMES_SECONDS)
    if seen.state != "finished":
        run.cancel()
        raise GatewayAwayError(seen.problem.message if seen.problem else "It took too long")
    return lake_tables(seen.rows)


def tree() -> None:
    """Schemas, tables and columns, as the gateway names them."""
    st.markdown("**What is in the lake?**")
    way = console_state.connection()
    found: dict[str, list[LakeTable]] = {}
    try:
        for catalog in session.config().catalogs:
            for table in _tables(way.url, way.user, catalog, way):
                found.setdefault(f"{catalog}.{table.schema}", []).append(table)
    except GatewayAwayError as error:
        st.caption(f"Its names are not known: {plain(str(error))}")
        return
    if not found:
        st.caption("No table yet. `lakehelm demo init` makes some.")
        return
    place = st.selectbox("Schema", sorted(found), key="console_schema")
    part = st.text_input("Find a table", key="console_find", placeholder="part of its name")
    shown = [table for table in found[place] if (part or "").lower() in table.name.lower()]
    for table in shown[:MOST_TABLES]:
        with st.expander(plain(table.name), icon=":material/table_chart:"):
            st.code("\n".join(f"{name}  {kind}" for name, kind in table.columns), language=None)
            st.button(
                "Query it",
                key=f"console_from_{place}.{table.name}",
                on_click=console_state.new_tab,
                args=(f'SELECT *\nFROM {place}."{table.name}"',),
            )
    st.caption(f"{f.count(min(len(shown), MOST_TABLES))} of {f.count(len(found[place]))} tables.")


def saved(tab: str) -> None:
    """Keep the text of a tab, open what is kept."""
    told = st.session_state.pop(_TOLD, None)
    if told:
        st.info(told, icon=":material/bookmark:")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input("Save this tab as", key="console_name", max_chars=LONGEST_NAME)
        st.button(
            "Save", key="console_save", icon=":material/bookmark_add:", on_click=_save, args=(tab,)
        )
    kept = session.read_now(saved_queries)
    for one in kept[:50]:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button(
                plain(one.name),
                key=f"console_open_{one.query_id}",
                icon=":material/bookmark:",
                on_click=_open,
                args=(one.query_id, one.sql_text),
            )
            st.caption(f"{plain(one.saved_by)}, {f.moment(one.saved_at)}", width="content")
            st.code(f"?query={one.query_id}", language=None, width="content")
            st.button(
                "Remove",
                key=f"console_drop_{one.query_id}",
                type="tertiary",
                on_click=_drop,
                args=(one.query_id,),
            )
    st.caption(f"{f.count(len(kept))} saved; everybody who sees this page sees them.")


def _save(tab: str) -> None:
    way = console_state.connection()
    text = console_state.text_of(tab)
    try:
        kept = save_query(session.store(), st.session_state["console_name"], text, actor=way.user)
        console_state.name_address(kept.query_id)
        st.session_state[_TOLD] = "Saved: the address of this page leads to it."
    except LakehouseError as error:
        st.session_state[_TOLD] = f"Not saved: {plain(str(error))}"
    session.forget_reads()


def _open(query_id: str, text: str) -> None:
    console_state.name_address(query_id)
    console_state.new_tab(text)


def _drop(query_id: str) -> None:
    try:
        drop_query(session.store(), query_id, actor=console_state.connection().user)
        st.query_params.pop("query", None)
    except LakehouseError as error:
        st.session_state[_TOLD] = plain(str(error))
    session.forget_reads()


def history() -> None:
    """The visitor's own statements, newest first; a chosen one opens in a tab."""
    user = console_state.connection().user
    rows = session.read_now(own_statements, user)
    if not rows:
        st.caption(f"No statement of {plain(user)} is recorded yet.")
    else:
        texts = [row.sql_text or "" for row in rows]
        cells.show(
            [
                {
                    "submitted": row.submitted_at,
                    "status": cells.state_word("refused" if row.denial else row.status),
                    "engine": row.engine_id,
                    "duration": cells.seconds(row.elapsed_ms),
                    "rows": row.rows_sent,
                    "sql": cells.one_line(row.sql_text),
                }
                for row in rows
            ],
            {
                "submitted": cells.short_time_of("Submitted"),
                "status": "Status",
                "engine": "Engine",
                "duration": cells.number("Duration", "%.2f s"),
                "rows": cells.counted("Rows sent"),
                "sql": cells.wide("SQL"),
            },
            key="console_history",
            on_select=lambda: _again(texts),
        )
    frame.caption(
        f"The newest {f.count(len(rows))} statements of {plain(user)} through the gateway, "
        "recorded within seconds. Choose one to open it in a tab.",
        "queries",
    )


def _again(texts: list[str]) -> None:
    chosen = choice.selected("console_history", texts)
    if chosen:
        console_state.new_tab(chosen)
