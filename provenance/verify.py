"""Verification of the records of a workspace: apply the rules, keep the findings, sum them up."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from provenance.case import Store
from provenance.checks import check_paper, rules_id
from records.errors import UnknownPaper
from records.models import Check, Status
from records.status import derive_statuses
from records.workspace import Workspace


@dataclass(frozen=True)
class PaperReport:
    """What verification found about one paper."""

    paper_id: str
    title: str
    statuses: tuple[Status, ...]
    checks: tuple[Check, ...]

    @property
    def findings(self) -> list[Check]:
        """The checks that speak against something that was said, the gravest first."""
        found = [c for c in self.checks if c.outcome in ("contradicted", "absent")]
        order = {"wrong": 0, "outdated": 1, "incomplete": 2, "style": 3, None: 4}
        return sorted(found, key=lambda check: order[check.severity])

    @property
    def unavailable(self) -> list[Check]:
        """The checks that could not be made, because a source was not there to be read."""
        return [c for c in self.checks if c.outcome == "unavailable"]


def verify(workspace: Workspace, targets: Sequence[str] = ()) -> list[PaperReport]:
    """Apply every rule to the papers of a workspace and append the findings to its ledger.

    Rests on evidence that is on record; no source is asked.

    Args:
        workspace: where the records are.
        targets: paper ids; none means all papers of the store.

    Raises:
        UnknownPaper: a target that the store does not hold; nothing is written then.
    """
    store = Store.of(workspace.records())
    papers = [_known(target, store) for target in targets] or list(store.papers)
    reports = [_report(paper_id, store) for paper_id in dict.fromkeys(papers)]
    for report in reports:
        workspace.append(f"verify/{report.paper_id}", report.checks)
    if not targets:
        workspace.mark_verified(rules_id())
    return reports


def _report(paper_id: str, store: Store) -> PaperReport:
    checks = check_paper(paper_id, store)
    assertions = [a for a in store.assertions if a.paper_id == paper_id]
    return PaperReport(
        paper_id=paper_id,
        title=store.papers[paper_id].title,
        statuses=tuple(derive_statuses(assertions, checks)),
        checks=tuple(checks),
    )


def _known(target: str, store: Store) -> str:
    wanted = target.strip().removeprefix("arXiv:").removeprefix("https://arxiv.org/abs/")
    for paper_id in (wanted, re.sub(r"v\d+$", "", wanted)):
        if paper_id in store.papers:
            return paper_id
    if re.search(r"\.(bib|json|md|txt)$", target) or re.match(r"(https://doi\.org/)?10\.", target):
        raise UnknownPaper(
            f"{target!r} is a bibliography or a DOI, which this version cannot verify; "
            "give the id of a paper in the store"
        )
    raise UnknownPaper(
        f"no paper {target!r} is in the store, which holds {len(store.papers)}. "
        'List them with: fwp query "SELECT paper_id, title FROM papers"; '
        "add one with: fwp import FOLDER"
    )
