"""The questions that the dashboard and the report put to the store, as frames.

Each function takes ``ask``, which answers one SQL statement with a frame, so that the dashboard
can cache the answers and the report need not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pandas as pd

Ask = Callable[[str], pd.DataFrame]


def literal(text: str) -> str:
    """Return ``text`` as an SQL string."""
    return "'" + text.replace("'", "''") + "'"


def in_list(texts: Iterable[str]) -> str:
    """Return ``texts`` as an SQL list for IN; an empty one matches nothing."""
    return "(" + (", ".join(map(literal, texts)) or "NULL") + ")"


def subjects(ask: Ask) -> pd.DataFrame:
    """Return the papers that have claims, or all papers where none has."""
    return ask(
        "SELECT paper_id, title, year, arxiv_id, url FROM papers "
        "WHERE paper_id IN (SELECT paper_id FROM claims) "
        "OR NOT EXISTS (SELECT 1 FROM claims JOIN papers USING (paper_id)) ORDER BY paper_id"
    )


def described_papers(ask: Ask) -> pd.DataFrame:
    """Return all papers of which something is asserted, those with most fields first."""
    return ask(
        "SELECT a.paper_id, coalesce(any_value(p.title), a.paper_id) AS title, "
        "count(DISTINCT a.field) AS fields FROM assertions a LEFT JOIN papers p USING (paper_id) "
        "GROUP BY a.paper_id ORDER BY fields DESC, a.paper_id"
    )


def other_records(ask: Ask) -> pd.DataFrame:
    """Return the papers without claims, with the number of their asserted values by status."""
    return ask(
        "SELECT s.paper_id, any_value(p.title) AS title, "
        "count(*) FILTER (status = 'verified') AS verified, "
        "count(*) FILTER (status IN ('refuted', 'outdated')) AS refuted_or_outdated, "
        "count(*) FILTER (status = 'contested') AS contested, "
        "count(*) FILTER (status = 'unverified') AS unverified "
        "FROM statuses s JOIN papers p USING (paper_id) "
        "WHERE s.paper_id NOT IN (SELECT paper_id FROM claims) GROUP BY s.paper_id "
        "ORDER BY refuted_or_outdated DESC, contested DESC, s.paper_id"
    )


def statuses(ask: Ask, paper_id: str) -> pd.DataFrame:
    """Return every asserted value of a paper with its status, reason and who says it."""
    return ask(
        "SELECT s.field, s.value, s.status, s.reason, s.evidence_ids, "
        "list(DISTINCT e.source ORDER BY e.source) AS said_by, any_value(d.value) AS declared "
        "FROM (SELECT *, row_number() OVER () AS place FROM statuses) s "
        "JOIN assertions a USING (paper_id, field, value) "
        "LEFT JOIN evidence e ON e.evidence_id = a.evidence_id "
        "LEFT JOIN assertions d ON d.paper_id = s.paper_id AND d.field = s.field || ' status' "
        f"WHERE s.paper_id = {literal(paper_id)} GROUP BY ALL "
        "ORDER BY min(s.place)"
    )


def assertions(ask: Ask, paper_id: str, field: str) -> pd.DataFrame:
    """Return who asserts what of one field, in the order in which it was said."""
    return ask(
        "SELECT a.value, a.basis, a.asserted_on, s.status, s.reason, e.evidence_id, e.source, "
        "e.authority, e.grade, e.read_on, coalesce(nullif(a.excerpt, ''), e.excerpt) AS excerpt, "
        "e.note, e.url, e.sha256 "
        "FROM assertions a LEFT JOIN evidence e USING (evidence_id) "
        "LEFT JOIN statuses s USING (paper_id, field, value) "
        f"WHERE a.paper_id = {literal(paper_id)} AND a.field = {literal(field)} "
        "ORDER BY coalesce(a.asserted_on, e.read_on) NULLS FIRST, a.rowid"
    )


def proceedings_links(ask: Ask, paper_id: str) -> pd.DataFrame:
    """Return the addresses at which a proceedings owner speaks of the paper."""
    return ask(
        "SELECT url, min(source) AS source FROM evidence WHERE authority = 'proceedings' "
        "AND url IS NOT NULL AND (evidence_id IN (SELECT evidence_id FROM assertions "
        f"WHERE paper_id = {literal(paper_id)}) OR evidence_id IN (SELECT unnest(evidence_ids) "
        f"FROM checks WHERE paper_id = {literal(paper_id)} AND outcome = 'confirmed')) "
        "GROUP BY url ORDER BY url"
    )


def checks(ask: Ask, paper_id: str) -> pd.DataFrame:
    """Return all findings on a paper, the gravest first."""
    return ask(
        "SELECT field, value, outcome, severity, found, reason, rule, rule_version, grade, "
        f"evidence_ids FROM checks WHERE paper_id = {literal(paper_id)} "
        "ORDER BY coalesce(list_position(['wrong', 'outdated', 'incomplete', 'style'], severity), "
        "9), "
        "list_position(['contradicted', 'absent', 'unavailable', 'confirmed', 'not_applicable'], "
        "outcome), rowid"
    )


def evidence(ask: Ask, evidence_ids: Iterable[str] | None = None) -> pd.DataFrame:
    """Return sources, all or those named."""
    where = "" if evidence_ids is None else f"WHERE evidence_id IN {in_list(evidence_ids)} "
    return ask(
        "SELECT evidence_id, source, authority, grade, read_on, excerpt, note, url, sha256, facts "
        f"FROM evidence {where}ORDER BY rowid"
    )


def sources_of(ask: Ask, paper_id: str) -> pd.DataFrame:
    """Return the ids of the sources that assert something of a paper."""
    return ask(
        "SELECT DISTINCT evidence_id FROM assertions "
        f"WHERE paper_id = {literal(paper_id)} ORDER BY evidence_id"
    )


def coverage(ask: Ask, paper_id: str) -> pd.DataFrame:
    """Return the number of claims by kind and verdict, kinds in the paper's order."""
    return ask(
        "SELECT kind, verdict, count(*) AS claims, "
        "sum(count(*)) OVER (PARTITION BY kind)::BIGINT AS of_kind FROM side_by_side "
        f"WHERE paper_id = {literal(paper_id)} GROUP BY kind, verdict "
        "ORDER BY list_position(['exact', 'synthetic', 'language_model', 'translation', 'cost'], "
        "kind), list_position(['reproduced', 'direction reproduced', 'not reproduced', 'not run'], "
        "verdict)"
    )


def side_by_side(ask: Ask, paper_id: str) -> pd.DataFrame:
    """Return one row a claim, those that were run first.

    ``diverged`` tells a measured NaN from a claim that was not measured; ``scale`` is that of the
    runs behind the measured number.
    """
    return ask(
        "SELECT s.claim_id, s.locator, s.kind, s.statement, s.metric, s.comparison, s.claimed, "
        "s.measured, coalesce(NOT isfinite(s.measured), false) AS diverged, s.spread, s.seeds, "
        "s.verdict, s.reason, s.run_ids, s.experiment, "
        "(SELECT max(m.scale) FROM metrics m WHERE m.claim_id = s.claim_id "
        "AND m.run_id = s.run_ids[1]) AS scale FROM side_by_side s JOIN claims c USING (claim_id) "
        f"WHERE s.paper_id = {literal(paper_id)} ORDER BY s.verdict = 'not run', c.ordinal"
    )


def claim(ask: Ask, claim_id: str) -> pd.DataFrame:
    """Return the one row of a claim with its conditions and reference values (JSON)."""
    return ask(
        "SELECT c.*, e.source FROM claims c LEFT JOIN evidence e USING (evidence_id) "
        f"WHERE c.claim_id = {literal(claim_id)}"
    )


def runs(ask: Ask, run_ids: Iterable[str] | None = None) -> pd.DataFrame:
    """Return runs, newest first, all or those named."""
    where = "" if run_ids is None else f"WHERE r.run_id IN {in_list(run_ids)} "
    return ask(
        "SELECT r.run_id, r.experiment, r.seed, r.started, r.finished, r.code_version, r.config, "
        "r.environment, r.signature, r.shipped, count(m.name) AS metrics, "
        "count(DISTINCT m.claim_id) AS claims "
        f"FROM runs r LEFT JOIN metrics m USING (run_id) {where}"
        "GROUP BY ALL ORDER BY r.finished DESC, r.run_id"
    )


def final_metrics(ask: Ask, run_id: str) -> pd.DataFrame:
    """Return the numbers of a run that are not points of a curve."""
    return ask(
        "SELECT name, CAST(value AS VARCHAR) AS value, claim_id, scale, replay FROM metrics "
        f"WHERE run_id = {literal(run_id)} AND step IS NULL ORDER BY rowid"
    )


def compared_metrics(ask: Ask, run_ids: Iterable[str]) -> pd.DataFrame:
    """Return the numbers of runs that are no points of a curve: columns run_id, name, value."""
    return ask(
        "SELECT run_id, name, any_value(value) AS value FROM metrics "
        f"WHERE step IS NULL AND run_id IN {in_list(run_ids)} GROUP BY run_id, name "
        "ORDER BY min(rowid)"
    )


def changes(ask: Ask, paper_id: str) -> pd.DataFrame:
    """Return what the last session of work changed of a paper: subject, before, after, since."""
    return ask(
        "SELECT h.kind, coalesce(c.locator || ': ' || c.statement, h.field || ': ' || h.value) "
        "AS subject, h.before, h.after, h.since FROM changes h LEFT JOIN claims c USING (claim_id) "
        f"WHERE h.paper_id = {literal(paper_id)} ORDER BY h.kind DESC, h.rowid"
    )


def curves(ask: Ask, run_ids: Iterable[str], most: int = 400) -> pd.DataFrame:
    """Return the curves of runs, each thinned evenly to at most about ``most`` points."""
    return ask(
        "WITH points AS (SELECT run_id, name, step, value, "
        "row_number() OVER (PARTITION BY run_id, name ORDER BY step) - 1 AS place, "
        "count(*) OVER (PARTITION BY run_id, name) AS points FROM metrics "
        f"WHERE step IS NOT NULL AND isfinite(value) AND run_id IN {in_list(run_ids)}) "
        f"SELECT run_id, name, step, value FROM points WHERE place % (points // {most} + 1) = 0 "
        "OR place = points - 1 ORDER BY run_id, name, step"
    )


def schema(ask: Ask) -> pd.DataFrame:
    """Return the columns of all tables and views."""
    return ask(
        "SELECT t.table_type = 'VIEW' AS is_view, c.table_name, c.column_name, c.data_type "
        "FROM information_schema.columns c JOIN information_schema.tables t "
        "USING (table_schema, table_name) WHERE c.table_schema = 'main' "
        "AND c.table_name NOT IN ('meta', 'derived_statuses') "
        "ORDER BY is_view DESC, c.table_name, c.ordinal_position"
    )
