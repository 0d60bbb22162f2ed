"""The report: what the dashboard shows, as one printable HTML file without outside references."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from markupsafe import Markup

from dashboard import (
    charts,
    citation_charts,
    citation_frames,
    citation_queries,
    frames,
    markup,
    paper_tables,
    queries,
    report_figures,
)
from dashboard.card import paper_card
from dashboard.marks import VERDICTS
from records.errors import WorkspaceError
from records.files import write_whole
from records.index import Index
from records.workspace import Workspace

_TEMPLATE = Path(__file__).with_name("report.html.j2")
_ATTEMPTS = 3
_PACKAGES = ("fwp-repro", "duckdb", "pandas", "altair", "vl-convert-python")


def write_report(workspace: Workspace, target: Path) -> Path:
    """Write the report of a workspace to ``target``, complete or not at all; return ``target``.

    Raises:
        WorkspaceError: the file cannot be written.
    """
    text = render(workspace)
    try:
        write_whole(target, text.encode())
    except (OSError, ValueError) as error:
        raise WorkspaceError(
            f"cannot write the report {target}: {error}. "
            "Name a file in an existing folder that you may write to."
        ) from error
    return target


def render(workspace: Workspace) -> str:
    """Return the report as HTML, all of it from one state of the ledger if it ever rests."""
    index = Index(workspace.home)
    for _ in range(_ATTEMPTS):
        state = index.fingerprint()
        text = _template().render(_context(workspace, state))
        if index.fingerprint() == state:
            break
    return text


def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals |= {
        "badge": markup.badge,
        "link": markup.link,
        "legend": markup.legend,
        "number": frames.measured_text,
        "claimed": frames.claimed_text,
    }
    return environment.from_string(_TEMPLATE.read_text(encoding="utf-8"))


def _context(workspace: Workspace, state: str) -> dict[str, Any]:
    def ask(sql: str) -> pd.DataFrame:
        return workspace.query(sql).frame()

    sources = {row["evidence_id"]: row for row in frames.records(queries.evidence(ask))}
    papers = frames.records(queries.subjects(ask))
    return {
        "papers": [_paper(ask, paper, number, sources) for number, paper in enumerate(papers)],
        "others": frames.records(queries.other_records(ask)),
        "sources": list(sources.values()),
        "runs": frames.records(queries.runs(ask)),
        "problems": workspace.problems(),
        "generated": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "state": state,
        "versions": versions(),
        "verdict_names": list(VERDICTS),
        "style": Markup(markup.CARD_STYLE),
    }


def versions() -> dict[str, str]:
    """Return the versions of what made the report; a package that is not installed is left out."""
    found = {"Python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _paper(
    ask: queries.Ask, paper: dict[str, Any], number: int, sources: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    paper_id = str(paper["paper_id"])
    statuses = queries.statuses(ask, paper_id)
    checks = frames.records(queries.checks(ask, paper_id))
    claims = queries.side_by_side(ask, paper_id)
    coverage = queries.coverage(ask, paper_id)
    not_run = claims["verdict"] == "not run"
    return {
        "name": f"p{number}",
        "title": paper["title"],
        "card": paper_card(paper, statuses, queries.proceedings_links(ask, paper_id)),
        "statuses": _with_sources(frames.records(statuses), sources),
        "findings": _with_sources(
            [c for c in checks if c["outcome"] in ("contradicted", "absent")], sources
        ),
        "unavailable": [c for c in checks if c["outcome"] == "unavailable"],
        "checks": len(checks),
        "coverage": None if coverage.empty else _coverage(coverage, f"p{number}-coverage"),
        "claims": frames.records(claims[~not_run]),
        "not_run": _by_place(claims[not_run]),
        "figures": list(report_figures.figures(ask, paper_id, f"p{number}")),
        "tables": list(report_figures.tables(ask, paper_id)),
        "printed": [
            body for _, body in paper_tables.tables(paper_tables.cells(ask, paper_id), links=False)
        ],
        "changes": _changes(queries.changes(ask, paper_id)),
        "citations": _citations(ask, paper, f"p{number}-citations"),
    }


def _changes(changes: pd.DataFrame) -> dict[str, Any] | None:
    """Return what the last session changed as a table, and since when; None for nothing."""
    if changes.empty:
        return None
    table = report_figures.table("What the last session changed", frames.changes_table(changes))
    return {"since": f"{changes['since'].iloc[0]:%Y-%m-%d %H:%M} UTC", "table": table}


def _citations(ask: queries.Ask, paper: dict[str, Any], name: str) -> dict[str, Any] | None:
    """Return the citation links as a picture and a table; None where none is on record."""
    links = citation_frames.merged(citation_queries.links(ask, str(paper["paper_id"])))
    if links.empty:
        return None
    nodes = citation_frames.graph(paper, links)
    shown = citation_frames.links_table(links).drop(columns=["url", "reason"])
    return {
        "svg": None if nodes.empty else Markup(charts.svg(citation_charts.graph(nodes), name)),
        "table": report_figures.table(f"{len(links)} citation links", shown),
    }


def _with_sources(
    rows: list[dict[str, Any]], sources: dict[str, dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the rows with the sources that their ``evidence_ids`` name."""
    return [
        {**row, "sources": [sources[i] for i in row["evidence_ids"] or () if i in sources]}
        for row in rows
    ]


def _coverage(coverage: pd.DataFrame, name: str) -> dict[str, Any]:
    table = frames.coverage_table(coverage)
    return {
        "columns": list(table.columns),
        "rows": table.to_numpy().tolist(),
        "svg": Markup(charts.svg(charts.coverage(coverage), name)),
    }


def _by_place(claims: pd.DataFrame) -> list[dict[str, Any]]:
    """Return how many claims there are at each place in the paper, by kind."""
    sizes = claims.groupby(["locator", "kind"], sort=False)["claim_id"].count()
    return frames.records(sizes.reset_index(name="claims"))
