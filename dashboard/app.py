"""The dashboard's entry: one page a view, each under its own address.

Started by ``dashboard.launch``; the workspace is named by FWP_HOME.
"""

from __future__ import annotations

import streamlit as st

from dashboard.markup import PAGE_STYLE
from dashboard.page import show
from dashboard.titles import PAGES


def main() -> None:
    """Show the page that the address names."""
    # without icons: the browser would ask a font server on the net for a page's icon
    pages = [
        st.Page(f"views/{name}.py", title=title, url_path=name, default=name == PAGES[0][0])
        for name, title in PAGES
    ]
    chosen = st.navigation(pages, position="top")
    st.set_page_config(page_title=f"{chosen.title} · paper claims and evidence", layout="wide")
    st.html(f"<style>{PAGE_STYLE}</style>")
    show(chosen.run)


if __name__ == "__main__":
    main()
