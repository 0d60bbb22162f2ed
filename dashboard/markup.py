"""HTML pieces from the store's texts, all of them escaped: what a store says is never markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import urlencode, urlsplit

from markupsafe import Markup, escape

from dashboard.marks import mark

MOST_COMPARED = 8
"""Runs whose curves one chart can tell apart."""
_WORD = re.compile(r"\w+")
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")


def safe_url(url: object) -> str | None:
    """Return ``url`` if it is an absolute http or https address, and None otherwise."""
    if not isinstance(url, str):
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return url if parts.scheme in {"http", "https"} and parts.netloc else None


def link(url: object, text: str) -> Markup:
    """Return a link that opens beside the page; ``text`` alone where the address is not safe."""
    address = safe_url(url)
    if address is None:
        return Markup("{}").format(text)
    return Markup('<a href="{}" target="_blank" rel="noopener noreferrer">{}</a>').format(
        address, text
    )


def badge(name: str | None) -> Markup:
    """Return a status, verdict, outcome, severity or grade beside its coloured symbol."""
    if not name:
        return Markup("")
    shown = mark(name)
    return Markup(
        '<span class="fwp-badge"><span aria-hidden="true" style="background:{};color:{}">{}</span>'
        " {}</span>"
    ).format(shown.colour, shown.on_colour, shown.symbol, name.replace("_", " "))


def run_links(run_ids: Sequence[str]) -> Markup:
    """Return a link to each run on the Runs page, and one that compares them where they are few."""
    links = [_run_link({"run": run_id}, run_id) for run_id in run_ids]
    if 1 < len(run_ids) <= MOST_COMPARED:
        links.append(_run_link({"compared": list(run_ids)}, "compare them"))
    return Markup('<div class="fwp-legend">{}</div>').format(Markup(" ").join(links))


def _run_link(parameters: Mapping[str, object], text: str) -> Markup:
    address = "runs?" + urlencode(parameters, doseq=True)
    return Markup('<a href="{}" target="_self">{}</a>').format(address, text)


def legend(names: Iterable[str]) -> Markup:
    """Return the names with their symbols on a line that wraps."""
    return Markup('<div class="fwp-legend">{}</div>').format(Markup("").join(map(badge, names)))


def marked(text: str, value: str) -> Markup:
    """Return ``text`` with each word that also stands in ``value`` marked, in whatever case."""
    wanted = {word.casefold() for word in _WORD.findall(value)}
    parts, at = [], 0
    for word in _WORD.finditer(text):
        if word[0].casefold() in wanted:
            parts += [escape(text[at : word.start()]), Markup("<mark>{}</mark>").format(word[0])]
            at = word.end()
    return Markup("").join([*parts, escape(text[at:])])


def plain_markdown(text: str) -> str:
    """Return ``text`` so that Markdown shows it as it is, on one line."""
    return _PUNCTUATION.sub(r"\\\1", " ".join(text.split()))


def command_markdown(text: str) -> str:
    """Return a command as Markdown's code, whatever stands in it."""
    return "`" + " ".join(text.replace("`", "'").split()) + "`"


CARD_STYLE = """
.fwp-badge { display: inline-flex; gap: .35em; align-items: center; white-space: nowrap; }
.fwp-legend { display: flex; flex-wrap: wrap; gap: .3rem 1.1rem; }
.fwp-badge > span { border-radius: .3em; min-width: 1.35em; padding: 0 .25em; text-align: center;
  font-size: .85em; line-height: 1.5; font-weight: 700; box-sizing: border-box; }
.fwp-card { border: 1px solid color-mix(in srgb, currentColor 18%, transparent);
  border-radius: .6rem; padding: 1.1rem 1.3rem; overflow-wrap: anywhere; }
.fwp-card a { color: inherit; }
.fwp-card h2 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .35rem; padding: 0; }
.fwp-card dl { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1rem;
  margin: .9rem 0 0 !important; padding: 0 !important; }
.fwp-card dt { opacity: .75; } .fwp-card dt, .fwp-card dd { margin: 0 !important; }
.fwp-card dd > div { display: flex; flex-wrap: wrap; gap: 0 .8rem; }
.fwp-small { opacity: .78; font-size: .9rem; }
.fwp-table { overflow-x: auto; }
.fwp-table table { border-collapse: collapse; margin: 0; }
.fwp-table caption { text-align: left; font-weight: 600; padding: .2rem 0; }
.fwp-table th, .fwp-table td { padding: .25rem .7rem; text-align: left; vertical-align: top;
  border: 0; border-bottom: 1px solid color-mix(in srgb, currentColor 18%, transparent); }
.fwp-table td { font-variant-numeric: tabular-nums; white-space: nowrap; }
.fwp-table td a { color: inherit; }
mark { background: color-mix(in srgb, #e69f00 45%, transparent); color: inherit; }
@media (max-width: 30rem) {
  .fwp-card dl { grid-template-columns: 1fr; } .fwp-card dt { margin-top: .3rem; }
}
"""

PAGE_STYLE = (
    CARD_STYLE
    + """
[data-testid="stMainBlockContainer"] { padding-top: 4rem; }
[data-testid="stCaptionContainer"], [data-testid="stCaptionContainer"] p { color: inherit;
  opacity: 1; } [data-testid="stCaptionContainer"] p { opacity: .8; }
.fwp-story { list-style: none; margin: 0 !important; padding: 0 !important;
  overflow-wrap: anywhere; }
.fwp-story a { color: inherit; } .fwp-story q { font-style: italic; }
.fwp-story li { border-left: 3px solid color-mix(in srgb, currentColor 25%, transparent);
  padding: .1rem 0 .8rem 1rem; margin: 0 !important; }
"""
)
