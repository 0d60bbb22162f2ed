"""All sources of the world at once."""

from __future__ import annotations

from collections.abc import Sequence

from tests.provenance.loopback import Handler
from tests.provenance.world import WorldWork, arxiv, catalogues, dblp, openreview, pmlr
from tests.provenance.world.papers import PAPERS


def routes(works: Sequence[WorldWork] = PAPERS) -> dict[str, Handler]:
    """Return the routes of every source that the project asks."""
    found: dict[str, Handler] = {}
    for source in (arxiv, pmlr, openreview, dblp, catalogues):
        found |= source.routes(works)
    return found
