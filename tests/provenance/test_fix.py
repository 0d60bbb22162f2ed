"""Corrected bibliographies: what is wrong changes, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provenance.bibtex import parse_bibtex
from provenance.citation_checks import judge
from provenance.fix import fixed_bibtex, write_fixed
from provenance.works import CitationReport, Work
from records.errors import BibliographyError

PUBLISHED = Work(
    source="PMLR", authority="proceedings", work_key="v139/schlag21a",
    title="Linear RNNs Are Secretly Programmers & More",
    authors=("Imanol Schlag", "Aäron van den Oord", "Jürgen Schmidhuber"), year=2021,
    kind="proceedings", venue="International Conference on Machine Learning", series="icml",
    volume="139", pages="9355-9366", evidence_id="e",
)  # fmt: skip
PREPRINT = Work(
    source="arXiv", authority="arxiv", work_key="2102.11174v3", title=PUBLISHED.title,
    authors=PUBLISHED.authors, year=2021, kind="preprint", arxiv_id="2102.11174", evidence_id="a",
)  # fmt: skip
RIGHT = {
    "title": "Linear {RNN}s Are Secretly Programmers \\& More",
    "author": 'Schlag, Imanol and van den Oord, A{\\"a}ron and Schmidhuber, J{\\"u}rgen',
    "booktitle": "ICML",
    "year": "2021",
}


def entry(kind: str = "inproceedings", **fields: str) -> str:
    values = {**RIGHT, **fields}
    lines = "".join(f"  {name} = {{{value}}},\n" for name, value in values.items() if value)
    return f"@{kind}{{key,\n{lines}}}"


def reports(text: str) -> list[CitationReport]:
    return [judge(r, [PUBLISHED, PREPRINT], ["PMLR"], {}) for r in parse_bibtex(text)]


def fixed(text: str) -> str:
    return fixed_bibtex(text, reports(text))[0]


@pytest.mark.parametrize(
    ("field", "wrong", "right"),
    [
        ("year", "2020", "2021"),
        ("pages", "1--9", "9355--9366"),
        ("booktitle", "ICLR", "International Conference on Machine Learning"),
        ("title", "Linear {RNN}s Are Secretly Something Else \\& More",
         "Linear {RNNs} Are Secretly Programmers \\& More"),
        ("author", "Schlag, Imanol and Nobody, N. and Schmidhuber, J.",
         "Schlag, Imanol and van den Oord, A{\\\"a}ron and Schmidhuber, J{\\\"u}rgen"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_put_right(field: str, wrong: str, right: str) -> None:
    out = fixed(entry(**{field: wrong}))
    assert f"{field} = {{{right}}}" in out
    again = reports(out)
    assert [r.verdict for r in again] == ["correct"]


def test_only_the_wrong_field_changes() -> None:
    text = entry(year="2020", note="keep {me} as I am \\% # @", custom="x")
    assert fixed(text) == text.replace("{2020}", "{2021}")


def test_a_quoted_value_stays_quoted_and_a_number_gets_braces() -> None:
    text = entry(year="").removesuffix("}") + '  year = "2020"\n}'
    assert 'year = "2021"' in fixed(text)
    text = entry(year="").removesuffix("}") + "  year = 2020\n}"
    assert "year = {2021}" in fixed(text)


def test_a_preprint_becomes_the_publication_and_keeps_its_identifier() -> None:
    text = entry("article", booktitle="", journal="arXiv preprint arXiv:2102.11174")
    out = fixed(text)
    assert out.startswith("@inproceedings{key,")
    assert "journal" not in out
    assert "booktitle = {International Conference on Machine Learning}" in out
    assert "eprint = {2102.11174}" in out
    assert [r.verdict for r in reports(out)] == ["correct"]


def test_comments_order_keys_and_other_entries_stay() -> None:
    unknown = "@misc{who, title = {Nothing that anybody wrote of this kind}, author={X, Y}}"
    text = f"% head\n@string{{a = {{b}}}}\n{unknown}\n\n{entry(year='2020')}\n% tail\n"
    assert fixed(text) == text.replace("{2020}", "{2021}")


def test_unicode_files_get_unicode() -> None:
    text = "% Jürgen\n" + entry(author="Schlag, Imanol and Nobody, N. and Schmidhuber, J.")
    assert "van den Oord, Aäron" in fixed(text)


def test_an_ambiguous_or_unknown_entry_is_left_alone() -> None:
    text = "@misc{k, title={Another thing altogether}, author={X, Y}, year={1999}}"
    assert fixed(text) == text


@given(
    st.lists(
        st.text(alphabet='ab {}"\\%#=,@\n~ü', max_size=25).map(
            lambda body: f"@misc{{k, title={{{body.replace('{', '').replace('}', '')}}}}}\n"
        ),
        max_size=4,
    ),
    st.text(alphabet="abc %\n@", max_size=20),
)
def test_a_file_without_findings_stays_as_it_is(entries: list[str], between: str) -> None:
    text = between.join(entries)
    found = [judge(r, [], ["PMLR"], {}) for r in parse_bibtex(text)]
    assert fixed_bibtex(text, found) == (text, 0)


def test_the_input_is_never_written_over(tmp_path: Path) -> None:
    source = tmp_path / "refs.bib"
    source.write_text(entry(year="2020"), encoding="utf-8")
    (tmp_path / "hard.bib").hardlink_to(source)
    for target in (source, tmp_path / "." / "refs.bib", tmp_path / "hard.bib"):
        with pytest.raises(BibliographyError, match="is the bibliography itself"):
            write_fixed(source, target, reports(source.read_text("utf-8")))
    assert source.read_text("utf-8") == entry(year="2020")


def test_a_target_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    source = tmp_path / "refs.bib"
    source.write_text(entry(year="2020"), encoding="utf-8")
    with pytest.raises(BibliographyError, match="cannot be written"):
        write_fixed(source, tmp_path / "no" / "out.bib", reports(source.read_text("utf-8")))
    assert [p.name for p in tmp_path.iterdir()] == ["refs.bib"]


def test_the_count_is_of_entries_that_changed(tmp_path: Path) -> None:
    text = entry(year="2020") + "\n" + entry().replace("{key", "{other")
    source = tmp_path / "refs.bib"
    source.write_text(text, encoding="utf-8")
    assert write_fixed(source, tmp_path / "out.bib", reports(text)) == 1
