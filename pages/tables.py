"""Which tables hurt their readers? Score with its reasons, structure, history, columns used."""

from __future__ import annotations

import streamlit as st

from lakehouse_core.domain.errors import NotFoundError
from lakehouse_core.views import formatting as f
from lakehouse_core.views.health import count_states
from lakehouse_core.views.scans import table_scans
from lakehouse_core.views.table_detail import care_of, largest_partitions, latest_commits
from lakehouse_core.views.tables import (
    TableStructure,
    TableView,
    column_usage,
    commits,
    history,
    list_tables,
    show_table,
    size_histogram,
)
from pages.parts import cards, choice, frame, menu, session, table_charts
from pages.parts.layout_tab import layout_tab
from pages.parts.table_filter import narrowed
from pages.parts.table_grids import (
    care_grid,
    contributor_grid,
    partition_grid,
    table_grid,
)
from pages.parts.table_traffic import commit_grid, scan_grid
from pages.parts.text import plain


def listing() -> str | None:
    seen = session.read_now(list_tables)
    if not seen:
        frame.empty(
            "No table was collected yet",
            "Tables appear once the Iceberg catalog was read; in the demo that is within a minute "
            "after the lake was built.",
            "lakehelm collect --once iceberg",
        )
        return None
    cards.state_cards(count_states(tuple(view.health for view in seen)))
    kept = narrowed(seen)
    if not kept:
        st.info("No table passes these filters.", icon=":material/filter_alt_off:")
        return None
    ids = [view.structure.table_id for view in kept]
    table_grid(kept, "tables_grid", choice.remember("tables_grid", "table", ids))
    with st.container(horizontal=True, vertical_alignment="center"):
        frame.caption(
            "Lowest score first. Choose a row for its detail. Empty cells are not known.",
            "tables",
            "health",
        )
        cards.how(cards.HOW_HEALTH)
    return choice.chosen("tables_grid", "table", ids)


def detail(name: str) -> None:
    st.subheader(plain(name), anchor=False)
    try:
        view = session.read_now(show_table, name)
    except NotFoundError as error:
        st.info(plain(str(error)), icon=":material/search_off:")
        return
    verdict(view)
    structure(view.structure)
    left, right = st.columns(2)
    with left:
        st.markdown("**How large are its files?**")
        buckets = size_histogram(view.structure)
        if buckets:
            table_charts.file_sizes(buckets)
        frame.caption("Data files of the current snapshot.", "tables")
    with right:
        st.markdown("**How often is it written?**")
        made = session.read(commits, view.structure.table_id, session.bar())
        if made.rows.num_rows:
            table_charts.commits_over_time(made.rows, made.window)
        else:
            st.caption(f"No commit in {made.window.phrase}.")
        frame.caption(f"Commits of {made.window.phrase}.", "tables")
    left, right = st.columns(2)
    with left:
        st.markdown("**How did its structure change?**")
        past = session.read_now(history, view.structure.table_id)
        if past.num_rows:
            table_charts.structure_over_time(past)
        frame.caption("Every snapshot that was looked at.", "tables")
    with right:
        st.markdown("**Which columns do queries use, and as what?**")
        used = session.read(column_usage, view.structure.table_id, session.bar())
        if used.num_rows:
            table_charts.columns_used(used, session.colours())
        else:
            st.caption("No query of the window used this table, as far as its text was understood.")
        frame.caption(f"Queries of {made.window.phrase}; the 15 most frequent uses.", "queries")
    closer(view.structure)


def closer(seen: TableStructure) -> None:
    """Care, layout, partitions and commits, each on its own tab."""
    table_id = seen.table_id
    names = ["Maintenance", "Layout", "Partitions", "Commits", "Scans"]
    care, order, parts, made, scans = st.tabs(names)
    with order:
        layout_tab(table_id, seen.sort_order)
    with care:
        actions = session.read_now(care_of, table_id)
        if actions:
            care_grid(actions)
        else:
            st.caption("Nothing was proposed for this table so far.")
        frame.caption("Proposals and what came of them, newest first.", "health")
    with parts:
        partitions = session.read_now(largest_partitions, table_id)
        if partitions:
            partition_grid(partitions)
        else:
            st.caption("The table has no partitions, or they were not collected yet.")
        frame.caption("The largest partitions and those with the most files.", "tables")
    with made:
        commit_grid(session.read_now(latest_commits, table_id))
        frame.caption("The newest 100 commits, newest first.", "tables")
    with scans:
        read = session.read(table_scans, table_id, session.bar())
        if read.rows:
            scan_grid(read.rows)
        else:
            st.caption("No client reported a scan: point its metrics reporter at our ingest.")
        frame.caption(f"As Iceberg clients reported them in {read.window.phrase}.", "tables")


def verdict(view: TableView) -> None:
    health = view.health
    with st.container(horizontal=True, vertical_alignment="center"):
        frame.badge(health.state)
        st.markdown(f"Score **{f.count(health.score)}** of 100", width="content")
        st.caption(f"Amoro's score {f.count(health.amoro_score)}, for comparison", width="content")
        st.caption(f"Assessed {f.moment(health.assessed_at)}", width="content")
    if health.reason:
        st.warning(plain(health.reason), icon=":material/report:")
    if health.contributors:
        contributor_grid(health.contributors)
        frame.caption("What costs it points, worst first, with the limits.", "health")
    elif health.state == "healthy":
        st.markdown(":material/check_circle: No signal is past its limit.")


def structure(seen: TableStructure) -> None:
    cards.facts(
        [
            ("Data files", f.count(seen.data_files)),
            ("Size, rows", f"{f.size(seen.total_bytes)}, {f.count(seen.total_rows)} rows"),
            ("Small files", f"{f.count(seen.small_files)} ({f.percent(seen.small_file_share)})"),
            (
                "Average / median file",
                f"{f.size(seen.avg_file_bytes)} / {f.size(seen.median_file_bytes)}",
            ),
            ("Delete files", _deletes(seen)),
            ("Manifests", f"{f.count(seen.manifests)}, {f.size(seen.manifest_bytes)}"),
            ("Snapshots", f"{f.count(seen.snapshots)}, oldest {f.moment(seen.oldest_snapshot_at)}"),
            ("Last commit", f.moment(seen.latest_snapshot_at)),
            ("Partitions, skew", f"{f.count(seen.partitions)}, {f.count(seen.skew)}"),
            ("Sort order", seen.sort_order or "none"),
            ("Format version", f.count(seen.format_version)),
            ("Metadata file", f.size(seen.metadata_bytes)),
        ]
    )


def _deletes(seen: TableStructure) -> str:
    kinds = (
        (seen.position_delete_files, "position"),
        (seen.equality_delete_files, "equality"),
        (seen.deletion_vectors, "vectors"),
    )
    parts = ", ".join(f"{f.count(number)} {kind}" for number, kind in kinds if number)
    return f.count(seen.delete_files) + (f" ({parts})" if parts else "")


menu.enter()
frame.lead("Which tables hurt their readers?", "tables", "health")
chosen = listing() or st.query_params.get("table")
if chosen:
    detail(chosen)
