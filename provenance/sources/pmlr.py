"""Proceedings of Machine Learning Research: its pages, parsed.

Volume numbers are handed out on request, so a number says nothing of the conference: v130 belongs
to AISTATS 2021, v139 to ICML 2021. Only the volume's header tells.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from provenance.match import Venue, venue_series

_HEADER = re.compile(
    r"""^Volume\s+(?P<volume>R?\d+):\s+
        (?P<name>.+?),\s+
        (?P<dates>\d{1,2}\b[^,]*?\b(?P<year>\d{4}))\b
        (?:,\s*(?P<place>.*))?$""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class VolumeHeader:
    """The headline of a volume's page: "Volume 139: NAME, DATES, PLACE".

    ``year`` is that of the conference's dates, not of the publication.
    """

    volume: str
    conference: str
    dates: str
    year: int
    place: str | None

    @property
    def venue(self) -> Venue | None:
        """The conference series and year; None for a name that ``venues.toml`` does not list."""
        series = venue_series(self.conference)
        return Venue(series, self.year) if series else None


def parse_volume_header(text: str) -> VolumeHeader | None:
    """Parse the headline of a volume page; None where it has not the form of one."""
    match = _HEADER.match(" ".join(text.replace("\xa0", " ").split()))
    if match is None:
        return None
    return VolumeHeader(
        volume=match["volume"],
        conference=match["name"],
        dates=match["dates"],
        year=int(match["year"]),
        place=match["place"],
    )
