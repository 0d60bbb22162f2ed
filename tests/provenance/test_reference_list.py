"""Reference lists read from LaTeXML's HTML, and works looked up in them."""

from __future__ import annotations

import pytest

from provenance.sources.reference_list import cites, html_request, parse_references
from records.errors import UnreadableAnswer

# As LaTeXML writes a natbib list: one ltx_bibblock for authors, title and the rest.
PAGE = """<html><body><section class="ltx_bibliography"><ul class="ltx_biblist">
<li class="ltx_bibitem" id="bib.bib1"><span class="ltx_tag ltx_tag_bibitem">Ba et al. (2016)</span>
<span class="ltx_bibblock">Ba, J., Hinton, G. E., and Ionescu, C.
</span><span class="ltx_bibblock">Using fast weights to attend to
the recent past.</span>
<span class="ltx_bibblock">In <em class="ltx_emph">Proc. NIPS</em>, 2016.</span></li>
<li class="ltx_bibitem"><span class="ltx_bibblock">D. Ha, A. Dai, and Q. V. Le. Hypernetworks
for everything. ICLR, 2017.</span></li>
<li class="ltx_bibitem"><span class="ltx_bibblock">Y. Bengio. “Is it so? A study,” 2020.
<a href="https://arxiv.org/abs/2001.00001v2" class="ltx_ref">link</a></span></li>
</ul></section></body></html>""".encode()


def test_an_entry_is_its_parts_and_links_without_its_label() -> None:
    first, second, third = parse_references(PAGE)
    assert first.splitlines() == [
        "Ba, J., Hinton, G. E., and Ionescu, C.",
        "Using fast weights to attend to the recent past.",
        "In Proc. NIPS , 2016.",
    ]
    assert "Hypernetworks for everything" in second
    assert third.splitlines()[-1] == "https://arxiv.org/abs/2001.00001v2"


@pytest.mark.parametrize(
    "title",
    [
        "Using Fast Weights to Attend to the Recent Past",
        "Using fast-weights to attend to the recent past",  # hyphens do not count
        "Is It So? A Study",
        "Hypernetworks for everything",
    ],
)
def test_a_cited_title_is_found_however_it_is_set(title: str) -> None:
    assert cites(parse_references(PAGE), title, None) is not None


@pytest.mark.parametrize(
    "title", ["HyperNetworks", "Fast weights", "Attention is all you need", ""]
)
def test_a_title_that_is_only_part_of_another_is_not_found(title: str) -> None:
    assert cites(parse_references(PAGE), title, None) is None


def test_an_identifier_finds_its_entry_and_no_longer_one() -> None:
    entries = parse_references(PAGE)
    assert cites(entries, "Under another title", "2001.00001") == entries[2]
    assert cites(entries, "Under another title", "2001.0000") is None
    assert cites(entries, "Under another title", "001.00001") is None


@pytest.mark.parametrize("body", [b"", b"<html><p>No HTML for 2102.11174</p></html>", b"\xff\xfe"])
def test_a_page_without_a_list_is_unreadable_and_not_an_empty_list(body: bytes) -> None:
    with pytest.raises(UnreadableAnswer, match="no reference list"):
        parse_references(body)


def test_papers_before_arxiv_made_html_are_asked_of_ar5iv() -> None:
    """arXiv makes HTML since December 2023 (info.arxiv.org/about/accessible_HTML.html)."""
    assert html_request("2102.11174").url == "https://ar5iv.labs.arxiv.org/html/2102.11174"
    assert html_request("2412.06464").url == "https://arxiv.org/html/2412.06464"
    assert html_request("cs/0601001").url.startswith("https://ar5iv.labs.arxiv.org/")
