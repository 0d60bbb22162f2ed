"""What the store holds: one frozen model for each kind of record.

Records are validated when they are read from a data file or the ledger, and never change after
that. Floats may be NaN or infinite (a diverged training is a result); in JSON they are written as
the strings ``"NaN"``, ``"Infinity"`` and ``"-Infinity"`` and read back as floats.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import date
from typing import Any, Literal, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, model_validator

Grade = Literal["captured", "transcribed"]
Authority = Literal[
    "proceedings", "dblp", "semantic_scholar", "openalex", "arxiv", "crossref", "authors", "note"
]
Outcome = Literal["confirmed", "contradicted", "absent", "unavailable", "not_applicable"]
Severity = Literal["wrong", "outdated", "incomplete", "style"]
StatusName = Literal["verified", "contested", "refuted", "outdated", "unverified"]
ClaimKind = Literal["exact", "synthetic", "language_model", "translation", "cost"]
Comparison = Literal["=", "<", "<=", ">", ">=", "diverges"]
Direction = Literal["lower", "higher", "none"]
VerdictName = Literal["reproduced", "direction reproduced", "not reproduced", "not run"]
Scale = Literal["paper", "reduced"]


def digest(value: Any) -> str:
    """Return the first 16 hex digits of the sha256 of ``value``'s canonical JSON form."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Record(BaseModel):
    """Base of all records: immutable, and an unknown field is an error."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", ser_json_inf_nan="strings", str_strip_whitespace=True
    )


R = TypeVar("R", bound=Record)


def latest(records: Iterable[Record], model: type[R], key: str) -> list[R]:
    """Return the records of a type; of several with one value of ``key`` the last."""
    return list({getattr(r, key): r for r in records if isinstance(r, model)}.values())


def current_runs(records: Iterable[Record]) -> list[Run]:
    """Return the last run of each id; one that came with the project only where there is no own."""
    runs = sorted((r for r in records if isinstance(r, Run)), key=lambda run: not run.shipped)
    return latest(runs, Run, "run_id")


def distinct(records: Iterable[Record], model: type[R]) -> list[R]:
    """Return the records of a type, equal ones once."""
    return list(dict.fromkeys(r for r in records if isinstance(r, model)))


class Paper(Record):
    """A work that citation links, assertions and claims speak of.

    ``year`` is the year of first posting or publication as the source lists it; ``evidence_id``
    says which source that is.
    """

    paper_id: str = Field(min_length=1, max_length=200)
    title: str = Field(min_length=1)
    year: int | None = Field(default=None, ge=1600, le=2200)
    arxiv_id: str | None = None
    url: str | None = None
    evidence_id: str


class Evidence(Record):
    """A source as it was read: its bytes (``captured``), or a person's copy (``transcribed``).

    ``facts`` are the structured contents of the source, in the words of its own format; a check
    reads these and never the prose of ``note``. ``read_on`` is None where the day was not
    recorded.
    """

    evidence_id: str = Field(min_length=1)
    source: str = Field(min_length=1)
    authority: Authority
    grade: Grade
    kind: str = Field(min_length=1, description="format of the facts, such as 'pmlr-volume-header'")
    url: str | None = None
    read_on: date | None = None
    media_type: str | None = None
    sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    excerpt: str = ""
    facts: dict[str, Any] = Field(default_factory=dict)
    note: str = ""

    @model_validator(mode="after")
    def _captured_bytes_have_a_hash(self) -> Evidence:
        if self.grade == "captured" and self.sha256 is None:
            raise ValueError("captured evidence needs the sha256 of its bytes")
        return self


class ListEntry(Record):
    """One work on a list that a source publishes, such as the papers of a conference.

    ``position`` is the place in the list as it was read, from 1.
    """

    evidence_id: str
    position: int = Field(ge=1, lt=2**31)
    title: str = Field(min_length=1)
    authors: tuple[str, ...] = ()
    pages: str | None = None
    url: str | None = None


class Assertion(Record):
    """What one source says of one field of a paper.

    ``basis`` is the place that the source itself names as its ground ("arXiv comment field"),
    ``excerpt`` the words in which it says so, where they are not those of the whole source.
    """

    assertion_id: str = Field(min_length=1)
    paper_id: str = Field(min_length=1)
    field: str = Field(min_length=1)
    value: str
    evidence_id: str
    asserted_on: date | None = None
    basis: str | None = None
    excerpt: str = ""


class Check(Record):
    """What one rule found about one value of one field.

    ``grade`` is the lowest grade of the evidence that the finding rests on. ``severity`` is set
    where something is amiss.
    """

    rule: str
    rule_version: int = Field(ge=1)
    paper_id: str
    field: str
    value: str | None = None
    outcome: Outcome
    severity: Severity | None = None
    found: str = ""
    reason: str
    evidence_ids: tuple[str, ...] = ()
    grade: Grade | None = None

    @property
    def check_id(self) -> str:
        """Identity of the finding: equal findings have equal ids."""
        return digest(self.model_dump(mode="json"))


class Citation(Record):
    """A link: ``citing_id`` has ``cited_id`` in its reference list, says ``evidence_id``.

    ``position`` is the rank in the source's list, from 1.
    """

    citing_id: str
    cited_id: str
    evidence_id: str
    position: int | None = Field(default=None, ge=1, lt=2**31)


class ReferenceCheck(Record):
    """What was found of one field of an entry of a bibliography; one more a reference, of no field.

    ``file`` is the bibliography as it was named, ``entry`` the key in it. ``existence`` tells
    whether the cited work was found, ``verdict`` sums up the whole entry. ``outcome`` and
    ``severity`` are those of the field.
    """

    file: str
    entry: str
    title: str | None = None
    existence: str
    verdict: str
    field: str | None = None
    outcome: Outcome | None = None
    severity: Severity | None = None
    cited: str | None = None
    found: str | None = None
    source: str | None = None
    reason: str = ""
    evidence_ids: tuple[str, ...] = ()


class Tolerance(Record):
    """How far a measured value may lie from the claimed one: the larger of the two bounds.

    ``absolute`` is in the metric's unit, ``relative`` a fraction of the claimed value.
    """

    absolute: float = Field(default=0.0, ge=0)
    relative: float = Field(default=0.0, ge=0)


class Derivation(Record):
    """How a claim's value follows from what was measured for other claims, its points.

    The points are the claims of the same paper and experiment about ``metric`` whose conditions
    have one of the values that ``over`` lists for each name. ``axis`` names the condition, a
    number, that places them, ``series`` those that tell one line of a figure from another, and
    ``subject`` is the line that a rank or share is of, by the values of these. ``reduce`` is

    - ``knee``: the largest place up to which every point is at most ``threshold``, 0 for none; a
      point that holds again beyond one that failed does not count;
    - ``lowest``: the lowest value of all;
    - ``share_lowest``: of the places where another line is above ``threshold``, the share at which
      the subject is not, or is the lowest;
    - ``rank``: the subject's place among the lines at one place, 1 for the lowest value;
    - ``rank_by_mean``: the same by the mean of the course up to step ``until``;
    - ``order``: of the pairs at one place whose claimed values differ by more than their
      tolerances, the share that is measured in the same order.
    """

    reduce: Literal["knee", "lowest", "share_lowest", "rank", "rank_by_mean", "order"]
    over: dict[str, tuple[str | float | int | bool, ...]] = Field(default_factory=dict)
    metric: str = "eval_loss"
    axis: str = "S"
    series: tuple[str, ...] = ("feature_map", "rule")
    subject: tuple[str | float | int | bool, ...] = ()
    threshold: float | None = Field(default=None, allow_inf_nan=False)
    until: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Derivation:
        needs = {
            "threshold": ("knee", "share_lowest"),
            "subject": ("share_lowest", "rank", "rank_by_mean"),
            "until": ("rank_by_mean",),
        }
        for name, kinds in needs.items():
            if self.reduce in kinds and getattr(self, name) in (None, ()):
                raise ValueError(f"a derivation by {self.reduce!r} needs {name!r}")
        if self.subject and len(self.subject) != len(self.series):
            raise ValueError("the subject has one value for each name in 'series'")
        return self


class Curve(Record):
    """The course of a metric that a source gives for a claim: a value every ``every`` steps."""

    claim_id: str
    metric: str = Field(min_length=1)
    every: int = Field(ge=1)
    values: tuple[float, ...]
    evidence_id: str


class Claim(Record):
    """A number or statement of a paper, and how it is judged.

    ``claimed`` is what the paper says of ``metric`` under ``conditions``; ``comparison`` says how
    (``>`` for the paper's ">260"; ``diverges`` where the paper reports NaN). ``direction``, which
    way is better, is shown and not judged. ``replay_tolerance`` is tried first for runs that replay
    the authors' own random streams. ``compared_to`` names the claim against which the order is
    judged when the run's scale is not the paper's. ``derivation`` says how the value follows from
    what was measured for other claims. ``reference`` holds further values stated for
    the same point, shown but not judged.
    """

    claim_id: str = Field(min_length=1)
    paper_id: str = Field(min_length=1)
    kind: ClaimKind
    locator: str = Field(min_length=1)
    statement: str = Field(min_length=1)
    metric: str = Field(min_length=1)
    claimed: float | None = None
    comparison: Comparison = "="
    tolerance: Tolerance = Tolerance()
    replay_tolerance: Tolerance | None = None
    direction: Direction = "none"
    compared_to: str | None = None
    conditions: dict[str, str | float | int | bool] = Field(default_factory=dict)
    reference: dict[str, str | float | int | bool] = Field(default_factory=dict)
    derivation: Derivation | None = None
    experiment: str | None = None
    evidence_id: str

    @model_validator(mode="after")
    def _a_number_unless_it_diverges(self) -> Claim:
        if (self.claimed is None) != (self.comparison == "diverges"):
            raise ValueError("claimed is a number, except where comparison is 'diverges'")
        return self


class Metric(Record):
    """One measured number of a run.

    With ``claim_id`` it is a measurement of that claim; ``scale`` says whether it was made under
    the claim's own conditions (``paper``) or under smaller ones (``reduced``). ``replay`` marks a
    replay of the authors' random streams. ``step`` orders the points of a curve.
    """

    name: str = Field(min_length=1)
    value: float
    claim_id: str | None = None
    scale: Scale = "paper"
    replay: bool = False
    step: int | None = Field(default=None, ge=0, lt=2**63)


class Run(Record):
    """One finished execution; ``config`` is everything that the numbers depend on but the seed.

    ``shipped`` marks a reference run that came with the project and was not made in this workspace.
    """

    run_id: str = Field(min_length=1)
    experiment: str = Field(min_length=1)
    config: dict[str, Any]
    seed: int = Field(ge=-(2**63), lt=2**63)
    code_version: str
    environment: dict[str, str]
    started: AwareDatetime
    finished: AwareDatetime
    metrics: tuple[Metric, ...]
    shipped: bool = False

    @property
    def signature(self) -> str:
        """One line that says how the numbers were made: a pasted number keeps its recipe."""
        settings = ",".join(f"{k}={v}" for k, v in sorted(self.config.items()))
        machine = "|".join(f"{k}:{v}" for k, v in sorted(self.environment.items()))
        return f"{self.experiment}|{settings}|seed:{self.seed}|{machine}|code:{self.code_version}"


class Status(Record):
    """Derived: where one asserted value of a record's field stands.

    ``grade`` is the lowest grade of the evidence that the deciding checks rest on; None where no
    check decides.
    """

    paper_id: str
    field: str
    value: str
    status: StatusName
    reason: str
    evidence_ids: tuple[str, ...] = ()
    grade: Grade | None = None


class Verdict(Record):
    """Derived: a claim against its runs.

    ``measured`` is the median over seeds and ``spread`` their sample standard deviation (None for
    fewer than two seeds). ``margin`` is how far the measured value may lie from the claimed one, in
    the metric's unit; None where no value was compared.
    """

    claim_id: str
    verdict: VerdictName
    reason: str
    rule: str
    measured: float | None = None
    spread: float | None = None
    seeds: tuple[int, ...] = ()
    run_ids: tuple[str, ...] = ()
    margin: float | None = None


class Change(Record):
    """Derived: what the last session of work made of a claim's verdict or of a value's status.

    ``before`` is None where there was none. ``since`` is when the session began. A change of a
    verdict names ``claim_id``, one of a status ``field`` and ``value``.
    """

    kind: Literal["verdict", "status"]
    paper_id: str
    claim_id: str | None = None
    field: str | None = None
    value: str | None = None
    before: str | None
    after: str
    since: AwareDatetime
