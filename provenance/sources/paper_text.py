"""The tables and the sentences with numbers of a paper, from its HTML as LaTeXML writes it.

LaTeXML marks a table as ``figure.ltx_table`` with ``figcaption``, its cells as ``td`` and ``th``,
a section as ``section.ltx_section`` (or ``ltx_subsection``, ``ltx_appendix``) with a heading whose
number is a ``span.ltx_tag``. Formulas carry their TeX in ``alttext``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from records.errors import UnreadableAnswer

if TYPE_CHECKING:
    from bs4 import Tag

SOURCE = "arXiv HTML"
PARSER = "paper-text/1"
"""Name and version of the parser; the version goes up when it reads anything differently."""

_SECTIONS = "section.ltx_section, section.ltx_subsection, section.ltx_appendix"


@dataclass(frozen=True)
class Table:
    """A table: its label ("Table 2"), and its rows with every cell that spans rows repeated."""

    label: str
    caption: str
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Passage:
    """A sentence with a number in it, and the number of the section in which it stands."""

    section: str
    text: str


@dataclass(frozen=True)
class PaperText:
    """What of a paper's text can bear out a number."""

    tables: tuple[Table, ...]
    passages: tuple[Passage, ...]


def parse_paper(body: bytes) -> PaperText:
    """Return the tables and the sentences with numbers of a paper.

    Raises:
        UnreadableAnswer: the page has neither a table nor a section as LaTeXML marks them.
    """
    from bs4 import BeautifulSoup

    page = BeautifulSoup(body, "lxml")
    for formula in page.select("math[alttext]"):
        formula.replace_with(f" {_formula(str(formula['alttext']))} ")
    tables = tuple(t for figure in page.select("figure.ltx_table") if (t := _table(figure)))
    passages = tuple(p for section in page.select(_SECTIONS) for p in _passages(section))
    if not tables and not passages:
        raise UnreadableAnswer(f"{SOURCE}: the page has no section or table as LaTeXML marks them")
    return PaperText(tables, passages)


def _formula(tex: str) -> str:
    """Return a formula as a person would type it: commands without backslash, no braces."""
    tex = re.sub(r"\\(?:mathrm|mathbf|text|bm|boldsymbol|operatorname|mathit)\b", "", tex)
    tex = re.sub(r"\\pm\b", "±", tex).replace("\\%", "%").replace("\\,", "")
    return re.sub(r"[\\{}$]", "", tex)


def _words(tag: Tag) -> str:
    return " ".join(tag.get_text(" ").split())


def _table(figure: Tag) -> Table | None:
    caption = figure.select_one("figcaption, .ltx_caption")
    grid = figure.select_one("table")
    label = re.match(r"Table\s*(\w+)", _words(caption)) if caption else None
    if caption is None or grid is None or label is None:
        return None
    return Table(f"Table {label[1]}", _words(caption), tuple(_rows(grid)))


def _rows(grid: Tag) -> list[tuple[str, ...]]:
    """Return the rows of a table, cells that span rows or columns repeated in each."""
    rows: list[tuple[str, ...]] = []
    above: dict[int, tuple[str, int]] = {}
    for row in grid.select("tr"):
        cells: list[str] = []
        for cell in row.find_all(["td", "th"], recursive=False):
            _repeat(above, cells)
            text = _words(cell)
            for _ in range(_span(cell, "colspan")):
                if (down := _span(cell, "rowspan")) > 1:
                    above[len(cells)] = (text, down - 1)
                cells.append(text)
        _repeat(above, cells)
        if any(cells):
            rows.append(tuple(cells))
    return rows


def _repeat(above: dict[int, tuple[str, int]], cells: list[str]) -> None:
    while len(cells) in above:
        text, left = above.pop(len(cells))
        if left > 1:
            above[len(cells)] = (text, left - 1)
        cells.append(text)


def _span(cell: Tag, name: str) -> int:
    value = str(cell.get(name, "1"))
    return min(int(value), 100) if value.isdigit() and int(value) > 0 else 1


def _passages(section: Tag) -> list[Passage]:
    """Return the sentences with numbers that stand in a section and in none below it."""
    heading = section.find(re.compile("h[1-6]"), recursive=False)
    tag = heading.select_one(".ltx_tag") if heading else None
    number = re.sub(r"^(?:Appendix|Section)\s+|[.\s]+$", "", _words(tag)) if tag else ""
    texts = []
    for paragraph in section.select(".ltx_p, p"):
        owner = paragraph.find_parent(
            "section", class_=re.compile("ltx_(sub)?section|ltx_appendix")
        )
        if owner is section and paragraph.find_parent("figure") is None:
            texts.append(_words(paragraph))
    sentences = [s for text in texts for s in re.split(r"(?<=[.!?])\s+(?=[A-Z(])", text)]
    return [Passage(number, s[:1000]) for s in sentences if re.search(r"\d", s)]
