from __future__ import annotations

import json

from provenance.citation_text import Checked, amiss, render, summary
from provenance.works import CitationFinding, CitationReport, CitationVerdict, Reference

HOSTILE = "<script>alert(1)</script>\x1b[31m|`rm`"


def report(
    key: str = "a", verdict: CitationVerdict = "wrong", *findings: CitationFinding, line: int = 7
) -> CitationReport:
    reference = Reference(key=key, position=1, line=line, format="bibtex", raw="@misc{a}")
    return CitationReport(
        reference=reference, existence="found", verdict=verdict, findings=findings
    )


def wrong(field: str = "year", cited: str = "2020", found: str = "2021") -> CitationFinding:
    return CitationFinding(
        field=field,
        outcome="contradicted",
        severity="wrong",
        cited=cited,
        found=found,
        source="PMLR",
        reason=f"the volume says {found}",
        evidence_ids=("warc:1",),
    )


def test_the_table_shows_what_is_cited_and_what_was_found() -> None:
    text = render([Checked("refs.bib", [report("a", "wrong", wrong())])], "table")
    row = next(line for line in text.splitlines() if line.strip().startswith("a "))
    assert row.split() == ["a", "wrong", "year", "(wrong)", "2020", "2021", "PMLR"]
    assert text.endswith("1 reference: 1 wrong")


def test_the_gravest_finding_comes_first() -> None:
    style = wrong("pages").model_copy(update={"severity": "style"})
    assert [f.field for f in amiss(report("a", "wrong", style, wrong()))] == ["year", "pages"]


def test_the_summary_counts_each_verdict() -> None:
    reports = [report("a", "wrong"), report("b", "correct"), report("c", "correct")]
    assert summary(reports) == "3 references: 1 wrong, 2 correct"


def test_hostile_text_is_harmless_in_a_terminal() -> None:
    text = render([Checked("x.bib", [report(HOSTILE, "wrong", wrong(cited=HOSTILE))])], "table")
    assert "\x1b" not in text


def test_hostile_text_is_harmless_in_markdown() -> None:
    text = render([Checked("x.bib", [report(HOSTILE, "wrong", wrong(cited=HOSTILE))])], "markdown")
    assert not {"<script>", "\x1b", "`rm`"} & {
        part for part in ("<script>", "\x1b", "`rm`") if part in text
    }
    (row,) = [line for line in text.splitlines() if "2021" in line]
    assert row.replace(r"\|", "").count("|") == 7


def test_sarif_points_at_the_line_of_the_entry() -> None:
    found = json.loads(render([Checked("my refs.bib", [report("a", "wrong", wrong())])], "sarif"))
    assert found["version"] == "2.1.0"
    (result,) = found["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "my%20refs.bib"
    assert place["region"]["startLine"] == 7
    assert (result["level"], result["ruleId"]) == ("error", "citation/year")
    assert [rule["id"] for rule in found["runs"][0]["tool"]["driver"]["rules"]] == ["citation/year"]


def test_json_has_every_finding_and_a_count_of_verdicts() -> None:
    (document,) = json.loads(render([Checked("r.bib", [report("a", "wrong", wrong())])], "json"))[
        "files"
    ]
    assert document["summary"]["wrong"] == 1
    assert document["references"][0]["findings"][0]["found"] == "2021"


def test_a_work_that_was_not_found_is_said_to_be_no_proof() -> None:
    missing = report("a", "unverifiable").model_copy(
        update={"existence": "not found", "asked": ("DBLP", "arXiv")}
    )
    text = render([Checked("r.bib", [missing])], "json")
    assert "not found" in text
    shown = " ".join(render([Checked("r.bib", [missing])], "markdown").split())
    assert "not found in 2 sources, which is no proof" in shown


def test_sources_that_could_not_be_asked_are_named_once() -> None:
    silent = {"DBLP": "timed out"}
    reports = [report(k, "unverifiable").model_copy(update={"silent": silent}) for k in "ab"]
    assert render([Checked("r.bib", reports)], "table").count("DBLP: timed out") == 1
