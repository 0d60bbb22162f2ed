"""Verification of the records of a workspace: apply the rules, keep the findings, sum them up."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from provenance.case import Store
from provenance.checks import check_paper, rules_id
from provenance.live import Asked, ask, by_answer
from provenance.lookup import Echo
from provenance.progress import Meter, no_meter
from provenance.works import Fetcher
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


@dataclass(frozen=True)
class Verification:
    """The reports on papers; which sources answered meanwhile, and which did not, and why."""

    reports: tuple[PaperReport, ...]
    answered: tuple[str, ...] = ()
    silent: Mapping[str, str] = field(default_factory=dict)


def verify(
    workspace: Workspace,
    targets: Sequence[str] = (),
    fetcher: Fetcher | None = None,
    *,
    seconds: float = 600.0,
    echo: Echo = lambda _: None,
    meter: Meter = no_meter,
) -> Verification:
    """Apply every rule to the papers of a workspace and append the findings to its ledger.

    Args:
        workspace: where the records are.
        targets: paper ids; none means all papers of the store.
        fetcher: who is asked for the papers' sources first; None to rest on what is on record.
        seconds: how long asking may take, at most.
        echo: told what is asked.
        meter: told of each answer.

    Raises:
        UnknownPaper: a target that the store does not hold; nothing is written then.
    """
    store = Store.of(workspace.records())
    papers = list(dict.fromkeys(_known(target, store) for target in targets)) or list(store.papers)
    asked = Asked()
    if fetcher is not None:
        asked = ask(store, fetcher, papers=papers, seconds=seconds, echo=echo, meter=meter)
        for answer, records in by_answer(asked.records).items():
            workspace.append(f"live/{answer}", records)
        store = Store.of(workspace.records())
    reports = [_report(paper_id, store) for paper_id in papers]
    for report in reports:
        workspace.append(f"verify/{report.paper_id}", report.checks)
    if not targets:
        workspace.mark_verified(rules_id())
    return Verification(tuple(reports), tuple(asked.answered), asked.silent)


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
    raise UnknownPaper(
        f"no paper {target!r} is in the store, which holds {len(store.papers)}. "
        'List them with: fwp query "SELECT paper_id, title FROM papers"; '
        "add one with: fwp import FOLDER"
    )
