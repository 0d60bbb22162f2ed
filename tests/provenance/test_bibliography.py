"""Bibliographies of every kind read as references, damaged ones as far as they go."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provenance.bibliography import parse_bibliography, parse_csl, read_bibliography
from provenance.bibtex import parse_bibtex
from provenance.identifiers import find_identifiers, names_only_arxiv, without_identifiers
from provenance.tex import plain_text
from provenance.works import Reference
from records.errors import BibliographyError


def bibtex(text: str) -> Reference:
    [found] = parse_bibtex(text)
    return found


# TeX


@pytest.mark.parametrize(
    ("tex", "text"),
    [
        (r"J{\"u}rgen", "Jürgen"),
        (r"J\"urgen", "Jürgen"),
        (r"Erd{\H o}s", "Erdős"),
        (r"\c{C}a\u{g}lar", "Çağlar"),
        (r"{\'{\i}}", "í"),
        (r"{\O}rsted, {\L}ukasz, Wei{\ss}", "Ørsted, Łukasz, Weiß"),
        (r"50\% of R\&D", "50% of R&D"),
        (r"$O(n^2)$ in {RNN}s", "O(n^2) in RNNs"),
        (r"a~b -- c", "a b – c"),
        (r"\emph{Never} mind", "Never mind"),
        ("unbalanced {brace", "unbalanced brace"),
        (r"\unknowncommand{x} y", "x y"),
    ],
)
def test_tex_becomes_plain_text(tex: str, text: str) -> None:
    assert plain_text(tex) == text


@given(st.text(alphabet="\\{}$%~'\"`^abcuvHo &#_", max_size=30))
def test_no_tex_is_too_broken_to_read(tex: str) -> None:
    assert isinstance(plain_text(tex), str)


# Identifiers


@pytest.mark.parametrize(
    ("text", "arxiv_id", "version"),
    [
        ("arXiv:2102.11174", "2102.11174", None),
        ("arXiv preprint arXiv:2102.11174v2, 2021", "2102.11174", 2),
        ("https://arxiv.org/pdf/2102.11174v3.pdf", "2102.11174", 3),
        ("CoRR abs/2102.11174", "2102.11174", None),
        ("doi:10.48550/arXiv.2102.11174", "2102.11174", None),
        ("arXiv cs/0601001", "cs/0601001", None),
        ("pages 2102.11174", None, None),
    ],
)
def test_arxiv_identifiers_are_found(text: str, arxiv_id: str | None, version: int | None) -> None:
    found = find_identifiers(text)
    assert (found.arxiv_id, found.arxiv_version) == (arxiv_id, version)


def test_arxiv_s_own_doi_is_no_publisher_s() -> None:
    assert find_identifiers("https://doi.org/10.48550/arXiv.2102.11174").doi is None
    assert find_identifiers("See 10.1016/J.NEUCOM.2023.127063.").doi == (
        "10.1016/j.neucom.2023.127063"
    )


def test_a_link_ends_before_the_bracket_that_it_stands_in() -> None:
    assert find_identifiers("(see https://x.org/a_(b))").url == "https://x.org/a_(b)"
    assert find_identifiers("<https://x.org/a>.").url == "https://x.org/a"


@pytest.mark.parametrize(
    ("venue", "is_arxiv"),
    [
        ("arXiv preprint arXiv:2102.11174", True),
        ("CoRR", True),
        ("ArXiv, abs/2102.11174 (2021)", True),
        ("ICML (arXiv:2102.11174)", False),
        ("Preprints of the Hellenic Society", False),
        ("Neurocomputing", False),
    ],
)
def test_an_arxiv_string_is_no_venue(venue: str, is_arxiv: bool) -> None:
    assert names_only_arxiv(venue) is is_arxiv


def test_identifiers_leave_the_sentence_whole() -> None:
    text = "Title. In ICML, 2021. URL https://x.org/a. arXiv:2102.11174."
    assert without_identifiers(text).startswith("Title. In ICML, 2021.")
    assert "2102" not in without_identifiers(text)


# BibTeX


def test_macros_and_concatenation_are_resolved() -> None:
    found = parse_bibtex(
        '@string{icml = "International Conference on Machine Learning"}\n'
        "@inproceedings{a, title={T}, booktitle=icml # { 2021}, month = jul # {~18}}"
    )
    assert found[0].venue == "International Conference on Machine Learning 2021"
    assert found[0].fields["month"] == "July 18"


def test_fields_are_inherited_from_the_crossref() -> None:
    child, _ = parse_bibtex(
        "@inproceedings{a, title={T}, crossref={p}}\n@proceedings{p, title={Proc. X}, year=2020}"
    )
    assert (child.title, child.venue, child.year) == ("T", "Proc. X", 2020)


def test_a_broken_entry_costs_no_other_one() -> None:
    one, two, three = parse_bibtex(
        "@article{one, title={A {B}, year=2020}\n@misc{two, title={Fine}}\n@misc{three title={X}\n"
    )
    assert one.problems
    assert (two.title, two.problems) == ("Fine", ())
    assert three.problems


def test_keys_and_fields_given_twice_are_noted() -> None:
    first, second = parse_bibtex("@misc{k, title={A}, title={B}}\n@misc{k, title={C}}")
    assert first.title == "A"
    assert any("'title' is there twice" in p for p in first.problems)
    assert second.title == "C"
    assert any("used by an earlier entry" in p for p in second.problems)


def test_each_entry_knows_its_line_and_its_own_text() -> None:
    text = "% refs\n\n@misc{a, title={A}}\n\n@misc{b,\n  title={B}}\n"
    first, second = parse_bibtex(text)
    assert (first.line, second.line) == (3, 5)
    assert second.raw == "@misc{b,\n  title={B}}"


@pytest.mark.parametrize(
    ("author", "names", "truncated"),
    [
        ("Schlag, Imanol and Irie, Kazuki", ("Schlag, Imanol", "Irie, Kazuki"), False),
        ("Yang, Songlin and others", ("Yang, Songlin",), True),
        ("{Kimi Team}", ("Kimi Team",), False),
        ("{Barnes and Noble, Inc.}", ("Barnes and Noble, Inc.",), False),
        ("Ada Lovelace, Alan Turing, Kurt G{\\\"o}del",
         ("Ada Lovelace", "Alan Turing", "Kurt Gödel"), False),
    ],
)  # fmt: skip
def test_author_fields_are_taken_apart(
    author: str, names: tuple[str, ...], truncated: bool
) -> None:
    found = bibtex(f"@misc{{k, author={{{author}}}}}")
    assert (found.authors, found.truncated) == (names, truncated)


@pytest.mark.parametrize("author", ["(see arXiv listing)", "TBD", "???", "N/A"])
def test_a_placeholder_is_no_author(author: str) -> None:
    assert any("no name" in p for p in bibtex(f"@misc{{k, author={{{author}}}}}").problems)


def test_an_author_called_na_is_one() -> None:
    assert bibtex("@misc{k, author={Na Zhang}}").problems == ()


@pytest.mark.parametrize(
    "field",
    [
        "journal={arXiv preprint arXiv:2102.11174}",
        "journal={CoRR}, volume={abs/2102.11174}, url={https://arxiv.org/abs/2102.11174}",
        "eprint={2102.11174}, archivePrefix={arXiv}",
        "eprint={2102.11174}, eprinttype={arxiv}",
        "howpublished={\\url{https://arxiv.org/abs/2102.11174}}",
        "doi={10.48550/arXiv.2102.11174}",
    ],
)
def test_arxiv_is_an_identifier_wherever_it_stands(field: str) -> None:
    found = bibtex(f"@misc{{k, title={{T}}, {field}}}")
    assert (found.arxiv_id, found.venue, found.doi) == ("2102.11174", None, None)


def test_the_ground_that_a_note_names_is_kept() -> None:
    found = bibtex("@misc{k, title={T}, note={ICLR 2021 (per the arXiv comment field)}}")
    assert (found.venue, found.basis) == ("ICLR 2021", "arXiv comment field")


def test_ten_thousand_entries_and_a_huge_field_are_read_in_linear_time() -> None:
    entry = "@article{{k{n}, title={{Title {n} of {{X}}}}, author={{D{{\\'e}}, J. and R, S.}}}}\n"

    def seconds(count: int) -> float:
        start = time.perf_counter()
        assert len(parse_bibtex("".join(entry.format(n=n) for n in range(count)))) == count
        return time.perf_counter() - start

    seconds(100)
    assert seconds(8_000) < 4 * max(seconds(4_000), 0.05)
    assert len(str(bibtex(f"@misc{{k, title={{{'{x} ' * 300_000}}}}}").title)) > 500_000


# Files


def test_encodings_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "refs.bib"
    text = "@misc{k, author={Jürgen Müller}}"
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "latin-1"):
        path.write_bytes(text.encode(encoding))
        assert read_bibliography(path)[0].authors == ("Jürgen Müller",), encoding


def test_mixed_encodings_are_read_line_by_line_and_noted(tmp_path: Path) -> None:
    path = tmp_path / "refs.bib"
    path.write_bytes("@misc{k, title={Ä},\n".encode() + "author={Ö}}\n".encode("latin-1"))
    [found] = read_bibliography(path)
    assert (found.title, found.authors) == ("Ä", ("Ö",))
    assert any("not UTF-8" in problem for problem in found.problems)


def test_a_few_control_characters_make_no_binary_file(tmp_path: Path) -> None:
    (tmp_path / "x.bib").write_text("@misc{k, title={A\0B\x07}}", encoding="utf-8")
    assert read_bibliography(tmp_path / "x.bib")[0].title == "A B"


def test_spaces_that_do_not_break_and_control_characters_are_spaces() -> None:
    found = bibtex("@misc{k, title={A\u00a0B\x07C\u200bD\x1b[31m}}")
    assert found.title == "A B C D [31m"


@pytest.mark.parametrize(
    ("name", "content", "form"),
    [
        ("x.bib", "@misc{k, title={T}}", "bibtex"),
        ("x.txt", "@misc{k, title={T}}", "bibtex"),
        ("x.txt", "\\begin{thebibliography}{9}\\bibitem{k} A. B. T. 2020.", "bbl"),
        ("x.json", '[{"id": "k", "title": "T"}]', "csl-json"),
        ("x.md", "- A. Author. A title that is long. arXiv:2102.11174, 2021.", "markdown"),
        ("x.txt", "A. Author. A title that is long. In ICML, 2021.", "plain"),
    ],
)
def test_what_a_file_is_follows_from_its_contents(
    name: str, content: str, form: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert read_bibliography(tmp_path / name)[0].format == form


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.bib", b"\x00\x01" * 500, "binary"),
        ("x.bib", b"", "holds no reference"),
        ("x.json", b'{"a": [1]}', "no CSL-JSON"),
        ("x.json", b"{", "no JSON"),
        ("x.bib", b"\xff\xfe\x00", "UTF-16"),
    ],
)
def test_an_unusable_file_is_named(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BibliographyError, match=message) as error:
        read_bibliography(tmp_path / name)
    assert name in str(error.value)


def test_a_folder_or_a_missing_file_is_named(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere.bib"):
        with pytest.raises(BibliographyError, match="cannot be read"):
            read_bibliography(path)


@given(st.text(max_size=300), st.sampled_from(["bibtex", "csl-json", "markdown", "plain", "bbl"]))
def test_no_text_raises_anything_but_a_bibliography_error(text: str, form: str) -> None:
    try:
        found = parse_bibliography(text, form)  # type: ignore[arg-type]
    except BibliographyError:
        return
    assert all(reference.position == n for n, reference in enumerate(found, start=1))


# CSL-JSON


def test_csl_json_is_read() -> None:
    item = {
        "id": "schlag",
        "type": "paper-conference",
        "title": "Linear <i>Transformers</i>",
        "author": [{"family": "Schlag", "given": "Imanol"}, {"literal": "Kimi Team"},
                   {"family": "Oord", "non-dropping-particle": "van den", "given": "A."}],
        "container-title": "ICML",
        "issued": {"date-parts": [[2021, 7]]},
        "page": "9355-9366",
        "DOI": "10.1000/x",
    }  # fmt: skip
    [found] = parse_csl(json.dumps([item]))
    assert found.key == "schlag"
    assert found.title == "Linear Transformers"
    assert found.authors == ("Schlag, Imanol", "Kimi Team", "van den Oord, A.")
    assert (found.venue, found.year, found.pages, found.doi) == (
        "ICML", 2021, "9355-9366", "10.1000/x",
    )  # fmt: skip


@pytest.mark.parametrize(
    "issued", [{"raw": "July 2021"}, {"date-parts": [["2021"]]}, "2021", {"literal": "2021"}]
)
def test_a_csl_date_has_many_forms(issued: object) -> None:
    [found] = parse_csl(json.dumps({"title": "T", "issued": issued}))
    assert found.year == 2021


def test_a_preprint_in_csl_has_no_venue() -> None:
    [found] = parse_csl(json.dumps({"title": "T", "container-title": "arXiv:2102.11174 [cs]"}))
    assert (found.venue, found.arxiv_id) == (None, "2102.11174")
