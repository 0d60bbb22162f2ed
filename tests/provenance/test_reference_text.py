"""References in running text, in the styles that the field uses."""

from __future__ import annotations

from typing import Any

import pytest

from provenance.reference_text import parse_bbl, parse_list, parse_reference
from provenance.works import Reference

TITLE = "Linear transformers are secretly fast weight programmers"
THREE = ("Imanol Schlag", "Kazuki Irie", "Jürgen Schmidhuber")


def read(text: str) -> Reference:
    return parse_reference(text, "k", 1)


STYLES: dict[str, tuple[str, dict[str, Any]]] = {
    "natbib": (
        f"Imanol Schlag, Kazuki Irie, and Jürgen Schmidhuber. {TITLE}. In International Conference "
        "on Machine Learning, pp. 9355–9366. PMLR, 2021a.",
        {"title": TITLE, "authors": THREE, "year": 2021, "pages": "9355-9366",
         "venue": "International Conference on Machine Learning"},
    ),
    "editors": (
        f"Imanol Schlag, Kazuki Irie, and Jürgen Schmidhuber. {TITLE}. In Marina Meila and Tong "
        "Zhang (eds.), Proceedings of the 38th International Conference on Machine Learning, "
        "volume 139 of Proceedings of Machine Learning Research, pp. 9355-9366. PMLR, 2021.",
        {"title": TITLE, "volume": "139",
         "venue": "Proceedings of the 38th International Conference on Machine Learning"},
    ),
    "APA": (
        f"Schlag, I., Irie, K., & Schmidhuber, J. (2021). {TITLE}. *International Conference on "
        "Machine Learning (ICML), PMLR 139*, 9355–9366.",
        {"title": TITLE, "year": 2021, "volume": "139", "pages": "9355-9366"},
    ),
    "IEEE": (
        f"I. Schlag, K. Irie, and J. Schmidhuber, “{TITLE},” in Proc. ICML, vol. 139, 2021, "
        "pp. 9355-9366.",
        {"title": TITLE, "venue": "Proc. ICML", "year": 2021, "volume": "139"},
    ),
    "Springer": (
        f"Schlag, I., Irie, K., Schmidhuber, J.: {TITLE}. In: ICML, pp. 9355-9366 (2021)",
        {"title": TITLE, "venue": "ICML", "year": 2021, "pages": "9355-9366"},
    ),
    "Vancouver": (
        f"Schlag I, Irie K, Schmidhuber J. {TITLE}. arXiv preprint arXiv:2102.11174. 2021.",
        {"title": TITLE, "arxiv_id": "2102.11174", "venue": None, "year": 2021},
    ),
    "ACM": (
        f"Imanol Schlag, Kazuki Irie, and Jürgen Schmidhuber. 2021. {TITLE}. In ICML. 9355–9366.",
        {"title": TITLE, "authors": THREE, "year": 2021, "pages": "9355-9366"},
    ),
    "et al. before a title": (
        f"Schlag, I., et al. {TITLE}. arXiv:2102.11174, 2021.",
        {"title": TITLE, "truncated": True, "year": 2021},
    ),
    "gap": (
        f"Schlag, I., Irie, K., ... & Schmidhuber, J. (2021). {TITLE}. ICML.",
        {"title": TITLE, "truncated": True, "venue": "ICML"},
    ),
    "quoted, authors after": (
        f'"{TITLE}" (Schlag et al., 2021)',
        {"title": TITLE, "authors": ("Schlag",), "truncated": True, "year": 2021},
    ),
    "link": (
        f"[{TITLE}](https://arxiv.org/abs/2102.11174)",
        {"title": TITLE, "arxiv_id": "2102.11174", "authors": ()},
    ),
    "mention": (
        "DeltaProduct (Siems et al., NeurIPS 2025, arXiv:2502.10297)",
        {"title": "DeltaProduct", "authors": ("Siems",), "venue": "NeurIPS 2025", "year": 2025},
    ),
    "title first": (
        f"{TITLE}, ICLR 2021 (per the arXiv comment field)",
        {"title": TITLE, "venue": "ICLR 2021", "basis": "arXiv comment field"},
    ),
    "labelled": (
        f'title: "{TITLE}"; authors: [Imanol Schlag, et al.]; year: 2020; venue: preprint',
        {"title": TITLE, "authors": ("Imanol Schlag",), "truncated": True, "venue": None},
    ),
    "question": (
        "S. Liu and L. Yin. Do we need it? In-time training of networks. In ICML, 2021.",
        {"title": "Do we need it? In-time training of networks", "venue": "ICML"},
    ),
    "initials": (
        "John J. Hopfield. Neural networks and physical systems. PNAS, 79(8):2554–2558, 1982.",
        {"title": "Neural networks and physical systems", "authors": ("John J. Hopfield",)},
    ),
    "conflict of years": (
        f"Schlag, I. (2022). {TITLE}. ICML 2021.",
        {"year": 2022, "venue": "ICML 2021"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("style", STYLES)
def test_each_style_is_taken_apart(style: str) -> None:
    text, expected = STYLES[style]
    found = read(text)
    assert {name: getattr(found, name) for name in expected} == expected


def test_accents_that_pdf_extraction_detached_do_no_harm() -> None:
    found = read(
        "Kazuki Irie, Robert Csord ´ as, and J ´ urgen Schmidhuber. Going beyond linear¨ "
        "transformers. In NeurIPS, pp. 7703– 7717, 2021."
    )
    assert found.authors == ("Kazuki Irie", "Robert Csordas", "Jurgen Schmidhuber")
    assert (found.title, found.pages) == ("Going beyond linear transformers", "7703-7717")


def test_days_of_a_conference_are_no_pages() -> None:
    found = read(f"I. Schlag and K. Irie. {TITLE}. In ICML 2021, 18-24 July 2021, Virtual Event.")
    assert found.pages is None


@pytest.mark.parametrize(
    "text", ["", "2021", "see above", "(", "[1]", "*" * 3000, "A. " * 2000, "([{" * 1000]
)
def test_what_is_no_reference_has_no_invented_parts(text: str) -> None:
    found = read(text)
    assert found.authors == ()
    assert found.venue is None


# Lists


def test_a_numbered_list_keeps_numbers_as_keys_and_joins_wrapped_lines() -> None:
    text = (
        "# References\n\n[1] A. Author. A first title of things.\n    In ICML, 2020.\n"
        "[2] B. Writer. A second title. 2021."
    )
    first, second = parse_list(text, "plain")
    assert (first.key, first.line, first.title) == ("[1]", 3, "A first title of things")
    assert first.venue == "ICML"
    assert (second.key, second.line) == ("[2]", 5)


def test_paragraphs_and_single_lines_are_references_too() -> None:
    two = "A. Author. Title one of\nmany. 2020.\n\nB. Writer. Title two. 2021.\n"
    assert [r.title for r in parse_list(two, "plain")] == ["Title one of many", "Title two"]
    lines = "A. Author. Title one. 2020.\nB. Writer. Title two. 2021.\n"
    assert len(parse_list(lines, "plain")) == 2


def test_in_markdown_only_what_looks_like_a_reference_counts() -> None:
    text = """# A project
Some words about installing it in 2021.

- run `make`
- [Linear Transformers](https://arxiv.org/abs/2102.11174)
- Schlag, I., Irie, K. (2021). Fast weights everywhere. ICML.

| model | loss |
|---|---|
| delta | 0.1 |
"""
    assert [r.title for r in parse_list(text, "markdown")] == [
        "Linear Transformers", "Fast weights everywhere",
    ]  # fmt: skip


def test_a_bbl_file_keeps_its_keys() -> None:
    text = r"""\begin{thebibliography}{9}
\bibitem[Schlag et~al.(2021)Schlag, Irie, and Schmidhuber]{schlag2021}
Imanol Schlag, Kazuki Irie, and J{\"u}rgen Schmidhuber.
\newblock Linear transformers are secretly fast weight programmers.
\newblock In \emph{International Conference on Machine Learning}, pages 9355--9366. PMLR, 2021.

\bibitem{two}
A.~Author.
\newblock Another title of a paper?
\newblock \emph{Neural Computation}, 4\penalty0 (1):\penalty0 131--139, 1992.
\end{thebibliography}"""
    first, second = parse_bbl(text)
    assert (first.key, first.title, first.authors) == ("schlag2021", TITLE, THREE)
    assert (first.venue, first.pages) == (
        "International Conference on Machine Learning",
        "9355-9366",
    )
    assert (second.key, second.year, second.line) == ("two", 1992, 7)
    assert second.title == "Another title of a paper?"
