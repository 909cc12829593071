"""Is it wired right? The merged configuration with origins, connections, versions, the store."""

from __future__ import annotations

import streamlit as st

from lakehouse_core.domain.errors import StoreError
from lakehouse_core.views import formatting as f
from lakehouse_core.views.settings import connections, list_settings, store_facts, versions
from pages.parts import cells, menu, session
from pages.parts.text import plain


def wiring() -> None:
    config = session.config()
    st.subheader("What is it connected to?", anchor=False)
    cells.show(
        [
            {
                "name": item.name,
                "kind": item.kind,
                "address": item.address,
                "enabled": "✓ yes" if item.is_enabled else "○ no",
            }
            for item in connections(config)
        ],
        {"name": "Name", "kind": "Kind", "address": "Address", "enabled": "Enabled"},
    )
    st.caption("From the configuration. `lakehelm doctor` tests each connection.")


def configuration() -> None:
    loaded = session.loaded()
    st.subheader("What is configured, and where does each value come from?", anchor=False)
    st.caption(f"File {plain(str(loaded.path))}: valid. Secrets are references and stay masked.")
    search = st.text_input(
        "Find a key", key="settings_search", placeholder="engines.trino", bind="query-params"
    )
    rows = [
        {"key": row.key, "value": row.value, "origin": row.origin}
        for row in list_settings(loaded)
        if (search or "") in row.key
    ]
    cells.show(rows, {"key": "Key", "value": "Value", "origin": "Came from"})
    st.caption("The same as `lakehelm config show`.")


def held() -> None:
    st.subheader("What does the store hold?", anchor=False)
    try:
        facts = session.read_now(store_facts, session.config().store.path)
    except StoreError as error:
        st.warning(plain(str(error)), icon=":material/cloud_off:")
        st.code("lakehelm up", language="bash")
        return
    cells.show(
        [
            {
                "table": item.table_name,
                "rows": item.row_count,
                "oldest": item.oldest_at,
                "newest": item.newest_at,
            }
            for item in facts.tables
        ],
        {
            "table": "Table",
            "rows": cells.counted("Rows"),
            "oldest": cells.short_time_of("Oldest"),
            "newest": cells.short_time_of("Newest"),
        },
    )
    st.caption(f"{f.count(facts.row_count)} rows, file {f.size(facts.file_bytes)}, read just now.")


def about() -> None:
    st.subheader("Which versions run?", anchor=False)
    cells.show(
        [
            {"package": item.package, "version": item.version or "not installed"}
            for item in versions()
        ],
        {"package": "Package", "version": "Version"},
    )
    st.caption("Of the process that serves these pages.")


menu.enter()
st.caption("Is it wired right? `lakehelm doctor` checks this machine and says how to fix it.")
left, right = st.columns([3, 2])
with left:
    wiring()
    configuration()
with right:
    held()
    about()
