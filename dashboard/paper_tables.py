"""The paper's own tables as it prints them, our number beside each cell: escaped HTML. Pure.

The split of a result (valid, test) and the model size stand across, as in the paper; every other
condition that tells rows apart stands down the side.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

import pandas as pd
from markupsafe import Markup

from dashboard.frames import claimed_text, is_missing, measured_text, records, shown_verdict
from dashboard.marks import mark
from dashboard.queries import Ask, literal

_ACROSS = ("size", "split")
_FIRST = "model"
Row = Mapping[str, Any]


def cells(ask: Ask, paper_id: str) -> pd.DataFrame:
    """Return the claims that are cells of a table of the paper, in the order of the store.

    ``scale`` is that of the runs behind the measured number.
    """
    return ask(
        "SELECT s.paper_id, s.claim_id, s.locator, s.metric, s.comparison, s.claimed, s.measured, "
        "coalesce(NOT isfinite(s.measured), false) AS diverged, s.verdict, c.conditions, "
        "(SELECT max(m.scale) FROM metrics m WHERE m.claim_id = s.claim_id "
        "AND m.run_id = s.run_ids[1]) AS scale "
        "FROM side_by_side s JOIN claims c USING (claim_id) "
        f"WHERE s.paper_id = {literal(paper_id)} "
        "AND regexp_matches(s.locator, '^Table [0-9]{1,4}$') "
        "AND c.derivation IS NULL ORDER BY c.ordinal"
    )


def tables(frame: pd.DataFrame, *, links: bool) -> Iterator[tuple[str, Markup]]:
    """Yield the name and the HTML of each table of ``cells``, its metrics one below the other.

    Args:
        frame: see ``cells``.
        links: whether a measured number leads to its claim on the Claims page.
    """
    by_number = frame.assign(number=frame["locator"].str.split().str[-1].astype(int))
    for (_, name), rows in by_number.groupby(["number", "locator"]):
        by_metric = [part for _, part in rows.groupby("metric", sort=False)]
        by_metric.sort(key=len, reverse=True)
        body = (_table(str(name), records(part), links) for part in by_metric)
        yield str(name), Markup("").join(body)


def _table(name: str, rows: Sequence[Row], links: bool) -> Markup:
    conditions = [json.loads(row["conditions"]) for row in rows]
    across = [a for a in _ACROSS if any(a in held for held in conditions)]
    down = _telling(conditions, across)
    columns = list(dict.fromkeys(_key(held, across) for held in conditions))
    lines: dict[tuple[str, ...], dict[tuple[str, ...], list[Row]]] = {}
    places = max(_places(row["claimed"]) for row in rows)
    for row, held in zip(rows, conditions, strict=True):
        lines.setdefault(_key(held, down), {}).setdefault(_key(held, across), []).append(row)
    metric = _spaced(str(rows[0]["metric"]))
    head = [*map(_spaced, down), *(" ".join(key) or metric for key in columns)]
    body = Markup("").join(
        _line(key, [_cell(found.get(c, ()), places, links) for c in columns])
        for key, found in lines.items()
    )
    return Markup(
        '<div class="fwp-table"><table><caption>{}: {}</caption><thead><tr>{}</tr></thead>'
        "<tbody>{}</tbody></table></div>"
    ).format(
        name,
        metric,
        Markup("").join(Markup('<th scope="col">{}</th>').format(text) for text in head),
        body,
    )


def _telling(conditions: Sequence[Mapping[str, Any]], across: Sequence[str]) -> list[str]:
    """Return the conditions that name a row: the model, and all that are not the same in each."""
    names = dict.fromkeys(name for held in conditions for name in held if name not in across)
    several = [n for n in names if n == _FIRST or len({str(h.get(n)) for h in conditions}) > 1]
    return sorted(several, key=lambda name: name != _FIRST)


def _key(held: Mapping[str, Any], names: Sequence[str]) -> tuple[str, ...]:
    return tuple(_text(held.get(name)) for name in names)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _places(value: Any) -> int:
    """Return the decimal places that a claimed number is stated with."""
    exponent = 0 if is_missing(value) else Decimal(f"{value:.10g}").as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _line(key: tuple[str, ...], cells_: Sequence[Markup]) -> Markup:
    heads = Markup("").join(Markup('<th scope="row">{}</th>').format(text) for text in key)
    return Markup("<tr>{}{}</tr>").format(heads, Markup("").join(cells_))


def _cell(rows: Sequence[Row], places: int, links: bool) -> Markup:
    """Return a cell with both numbers of its claim, or of each of its claims."""
    both = (Markup("{}<br>{}").format(_printed(row, places), _ours(row, links)) for row in rows)
    return Markup("<td>{}</td>").format(Markup("<br>").join(both))


def _printed(row: Row, places: int) -> str:
    exact = row["comparison"] == "=" and not is_missing(row["claimed"])
    return f"{row['claimed']:,.{places}f}" if exact else claimed_text(row)


def _ours(row: Row, links: bool) -> Markup:
    """Return our number, its scale where it is not the paper's, and the verdict's symbol."""
    measured = measured_text(row["measured"], diverged=bool(row["diverged"]))
    scale = "" if is_missing(row["scale"]) or row["scale"] == "paper" else f" ({row['scale']})"
    verdict = shown_verdict(row)
    look = mark(verdict)
    shown = Markup(
        '<span class="fwp-badge"><span title="{}" role="img" aria-label="{}" '
        'style="background:{};color:{}">{}</span>{}</span>'
    ).format(
        verdict, verdict, look.colour, look.on_colour, look.symbol,
        f"{measured}{scale}" if measured else verdict,
    )  # fmt: skip
    if not links:
        return shown
    address = "claims?" + urlencode({"paper": row["paper_id"], "claim": row["claim_id"]})
    return Markup('<a href="{}" target="_self">{}</a>').format(address, shown)
