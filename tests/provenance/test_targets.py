from __future__ import annotations

from pathlib import Path

import pytest

from provenance.targets import identifier, sort_targets
from records.errors import UnknownPaper

KNOWN = {"2102.11174", "jmlr-17"}


@pytest.mark.parametrize(
    "name", ["2102.11174", "2102.11174v2", "arXiv:2102.11174", "https://arxiv.org/abs/2102.11174v3"]
)
def test_a_paper_of_the_store_is_known_by_any_form_of_its_identifier(name: str) -> None:
    assert sort_targets([name], KNOWN).papers == ("2102.11174",)


def test_a_paper_without_an_arxiv_identifier_is_known_by_its_id() -> None:
    assert sort_targets(["jmlr-17"], KNOWN).papers == ("jmlr-17",)


def test_files_are_known_by_their_ending_or_by_being_there(tmp_path: Path) -> None:
    (tmp_path / "references").write_text("x")
    names = ["missing.bib", "a.BBL", str(tmp_path / "references")]
    assert sort_targets(names, KNOWN).files == tuple(map(Path, names))


@pytest.mark.parametrize(
    "name", ["2406.06484", "hep-th/9711200", "https://arxiv.org/pdf/2406.06484v1.pdf"]
)
def test_another_arxiv_identifier_is_looked_up(name: str) -> None:
    (reference,) = sort_targets([name], KNOWN).identifiers
    assert reference.arxiv_id in ("2406.06484", "hep-th/9711200")


def test_a_doi_is_looked_up_in_lower_case() -> None:
    (reference,) = sort_targets(["https://doi.org/10.1162/NECO.1997.9.8.1735"], KNOWN).identifiers
    assert reference.doi == "10.1162/neco.1997.9.8.1735"


def test_a_version_is_kept() -> None:
    reference = identifier("2406.06484v2")
    assert reference is not None
    assert reference.arxiv_version == 2


def test_what_is_none_of_these_is_an_error() -> None:
    with pytest.raises(UnknownPaper, match=r"'hologram' is no paper of the store"):
        sort_targets(["hologram"], KNOWN)


def test_one_target_named_twice_is_verified_once() -> None:
    assert sort_targets(["2102.11174", "2102.11174"], KNOWN).papers == ("2102.11174",)
