"""The pages: the name in the address, which is that of the view's file, and the title."""

from __future__ import annotations

PAGES = (
    ("overview", "Overview"),
    ("claims", "Claims"),
    ("evidence", "Evidence"),
    ("citations", "Citations"),
    ("runs", "Runs"),
    ("sql", "SQL"),
    ("memory", "Memory"),
)
