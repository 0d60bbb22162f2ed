"""What the Citations page shows, as frames; see ``queries``."""

from __future__ import annotations

import pandas as pd

from dashboard.queries import Ask, literal

ROLES = {"cites": "cited by the paper", "cited by": "citing the paper"}
"""Which end of the link the other paper is."""


def links(ask: Ask, paper_id: str) -> pd.DataFrame:
    """Return one row a citation link of a paper: the other paper, and what was found on the link.

    Columns ``role`` (a key of ``ROLES``), ``other_id``, ``title``, ``year``, ``url``, ``source``
    and ``grade`` (who lists the link), ``outcome`` and ``reason`` of the check whether the citing
    paper's own reference list has it, ``possible`` and ``dates`` of the check of their dates.
    A link that several sources list has a row for each.
    """
    paper = literal(paper_id)
    return ask(
        "WITH links AS (SELECT *, citing_id || ' cites ' || cited_id AS link, "
        f"CASE WHEN citing_id = {paper} THEN 'cites' ELSE 'cited by' END AS role, "
        f"CASE WHEN citing_id = {paper} THEN cited_id ELSE citing_id END AS other_id "
        f"FROM citations WHERE {paper} IN (citing_id, cited_id)), "
        "found AS (SELECT paper_id, field, value, arg_max(outcome, rowid) AS outcome, "
        "arg_max(reason, rowid) AS reason FROM checks "
        "WHERE field IN ('citation', 'citation dates') GROUP BY ALL) "
        "SELECT l.role, l.other_id, coalesce(p.title, l.other_id) AS title, p.year, "
        "coalesce(p.url, 'https://arxiv.org/abs/' || p.arxiv_id) AS url, e.source, e.grade, "
        "coalesce(f.outcome, n.outcome) AS outcome, coalesce(f.reason, n.reason) AS reason, "
        "d.outcome AS possible, d.reason AS dates "
        "FROM links l LEFT JOIN papers p ON p.paper_id = l.other_id "
        "LEFT JOIN evidence e ON e.evidence_id = l.evidence_id "
        "LEFT JOIN found f ON f.paper_id = l.citing_id AND f.field = 'citation' "
        "AND f.value = l.link "
        "LEFT JOIN found n ON n.paper_id = l.citing_id AND n.field = 'citation' "
        "AND n.value IS NULL "
        "LEFT JOIN found d ON d.paper_id = l.citing_id AND d.field = 'citation dates' "
        "AND d.value = l.link "
        "ORDER BY l.role DESC, p.year, l.other_id, l.evidence_id"
    )


def findings(ask: Ask, paper_id: str) -> pd.DataFrame:
    """Return the findings on a paper's links and on the counts that sources state of them."""
    return ask(
        "SELECT outcome, severity, field, value, found, reason, rule FROM checks "
        f"WHERE paper_id = {literal(paper_id)} AND rule NOT IN ('citation-chronology') "
        "AND (field LIKE 'citation%' OR field LIKE 'cited by%' OR field LIKE 'references%') "
        "ORDER BY field, rowid"
    )


def stated_counts(ask: Ask, paper_id: str) -> pd.DataFrame:
    """Return how many citations and references the sources state, with who says so."""
    return ask(
        "SELECT a.field, a.value, e.source FROM assertions a JOIN evidence e USING (evidence_id) "
        f"WHERE a.paper_id = {literal(paper_id)} "
        "AND (a.field LIKE 'cited by%' OR a.field LIKE 'references%') ORDER BY a.field, a.rowid"
    )


def bibliographies(ask: Ask) -> pd.DataFrame:
    """Return the reference lists that ``fwp verify`` was given, with the findings on each entry."""
    return ask(
        "SELECT file, entry, title, existence, verdict, field, cited, found, source, reason "
        "FROM reference_checks ORDER BY file, rowid"
    )
