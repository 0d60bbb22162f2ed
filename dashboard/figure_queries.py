"""What the pictures of the paper's experiments are drawn from, as frames; see ``queries``."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from dashboard.queries import Ask, literal

MODES = {
    "weightiest": "Weightiest runs",
    "authors": "Authors' streams",
    "ours": "Our seeds",
}
"""Whose runs a measured value comes from: those that decide the verdict, or those of one mode."""

MODE_NAMES = {"authors": "the authors' streams", "ours": "our seeds"}
"""The modes within a sentence."""

FIRST_LINES = ("dpfp1 · sum", "tanh · fwm", "dpfp1 · fwm", "dpfp1 · delta")
"""The four rules that Fig. 3 of the paper compares."""

_SERIES = (
    "concat_ws(' · ', json_extract_string(c.conditions, 'feature_map'), "
    "nullif(json_extract_string(c.conditions, 'rule'), "
    "json_extract_string(c.conditions, 'feature_map')))"
)
_SIZE = "TRY_CAST(json_extract_string(c.conditions, 'S') AS INTEGER)"
_SIZED = (
    f"SELECT * FROM (SELECT c.*, {_SIZE} AS S, {_SERIES} AS series FROM claims c "
    "WHERE c.paper_id = {paper} AND c.comparison = '=' AND c.experiment IS NOT NULL "
    "AND json_extract_string(c.conditions, 'feature_map') IS NOT NULL) WHERE S IS NOT NULL"
)


def _verdicts(mode: str) -> str:
    """Return the relation of one mode's verdicts, one row a claim at most."""
    if mode == "weightiest":
        return "verdicts"
    return f"(SELECT * FROM mode_verdicts WHERE mode = {literal(mode)})"


def measured_modes(ask: Ask, paper_id: str, experiment: str) -> list[str]:
    """Return the modes, among ``MODES``, in which a claim of the experiment was measured."""
    found = ask(
        "SELECT DISTINCT mode FROM mode_verdicts JOIN claims USING (claim_id) "
        f"WHERE paper_id = {literal(paper_id)} AND experiment = {literal(experiment)}"
    )
    return [mode for mode in MODES if mode in set(found["mode"])]


def sized_experiments(ask: Ask, paper_id: str) -> pd.DataFrame:
    """Return the experiments whose claims are points over a size S, with their places."""
    return ask(
        "SELECT experiment, min(metric) AS metric, "
        "array_to_string(list(DISTINCT locator ORDER BY locator DESC), '; ') AS locators "
        f"FROM ({_SIZED.format(paper=literal(paper_id))}) GROUP BY experiment ORDER BY min(ordinal)"
    )


def sized_points(
    ask: Ask, paper_id: str, experiment: str, mode: str = "weightiest"
) -> pd.DataFrame:
    """Return one row a finite point: series, S, value and whose it is (claimed or measured).

    ``spread`` is the sample standard deviation over the seeds of a measured point, where it has
    more than one; ``mode`` is a key of ``MODES``.
    """
    return ask(
        f"WITH sized AS ({_SIZED.format(paper=literal(paper_id))}), "
        f"judged AS (SELECT * FROM {_verdicts(mode)}) "
        "SELECT series, S, 'claimed' AS whose, claimed AS value, NULL::DOUBLE AS spread, "
        "claim_id, '' AS verdict, ordinal FROM sized "
        f"WHERE experiment = {literal(experiment)} AND isfinite(claimed) "
        "UNION ALL SELECT series, S, 'measured', measured, spread, claim_id, verdict, ordinal "
        "FROM sized JOIN judged USING (claim_id) "
        f"WHERE experiment = {literal(experiment)} AND isfinite(measured) "
        "ORDER BY ordinal, whose"
    )


def logged_sizes(ask: Ask, paper_id: str, experiment: str) -> list[int]:
    """Return the sizes S at which the authors' logs of the experiment are in the store."""
    found = ask(
        f"SELECT DISTINCT {_SIZE} AS S FROM claims c JOIN logged_curves USING (claim_id) "
        f"WHERE c.paper_id = {literal(paper_id)} AND c.experiment = {literal(experiment)} "
        "AND S IS NOT NULL ORDER BY S"
    )
    return [int(size) for size in found["S"]]


def curves_at(
    ask: Ask, paper_id: str, experiment: str, size: int, mode: str = "weightiest"
) -> pd.DataFrame:
    """Return the logged and the measured curves of all lines of an experiment at one size.

    Columns ``series``, ``whose`` (``logged`` or ``measured``), ``line`` (a claim or a run),
    ``step`` and ``value``; a series has as many measured lines as there are runs of the mode.
    """
    return _logged_and_measured(
        ask,
        f"c.paper_id = {literal(paper_id)} AND c.experiment = {literal(experiment)} "
        f"AND {_SIZE} = {int(size)} AND c.derivation IS NULL",
        mode,
    )


def curves_of(ask: Ask, claim_id: str) -> pd.DataFrame:
    """Return the logged curve of one claim and those of the runs behind its verdict.

    Columns as in ``curves_at``.
    """
    return _logged_and_measured(ask, f"c.claim_id = {literal(claim_id)}", "weightiest")


def _logged_and_measured(ask: Ask, which: str, mode: str, most: int = 400) -> pd.DataFrame:
    """Return curves, each thinned evenly to at most about ``most`` points.

    A run's curve belongs to a claim where it is named like the logged metric or like it with
    ``_curve`` behind it.
    """
    return ask(
        f"WITH chosen AS (SELECT c.claim_id, {_SERIES} AS series, c.ordinal FROM claims c "
        f"WHERE {which}), logged AS (SELECT series, 'logged' AS whose, claim_id AS line, metric, "
        "step, value, ordinal FROM logged_curves JOIN chosen USING (claim_id)), "
        "behind AS (SELECT DISTINCT l.series, l.metric, l.ordinal, unnest(v.run_ids) AS run_id "
        f"FROM (SELECT DISTINCT series, line, metric, ordinal FROM logged) l "
        f"JOIN {_verdicts(mode)} v ON v.claim_id = l.line), "
        "points AS (SELECT series, whose, line, step, value, ordinal FROM logged UNION ALL "
        "SELECT b.series, 'measured', b.run_id, m.step, m.value, b.ordinal FROM behind b "
        "JOIN metrics m ON m.run_id = b.run_id AND m.step IS NOT NULL "
        "AND m.name IN (b.metric, b.metric || '_curve')), "
        "placed AS (SELECT *, row_number() OVER curve - 1 AS place, "
        "count(*) OVER (PARTITION BY series, whose, line) AS points FROM points "
        "WHERE isfinite(value) WINDOW curve AS (PARTITION BY series, whose, line ORDER BY step)) "
        f"SELECT series, whose, line, step, value FROM placed WHERE place % (points // {most} + 1) "
        "= 0 OR place = points - 1 ORDER BY ordinal, whose, line, step"
    )


def first_lines(names: Sequence[str]) -> list[str]:
    """Return the series that are drawn at first: those of ``FIRST_LINES``, or all without them."""
    first = [name for name in names if name in FIRST_LINES]
    return first if len(first) > 1 else list(names)


def knees(ask: Ask, paper_id: str) -> pd.DataFrame:
    """Return one row a knee, the largest S up to which a model stays under a loss.

    Columns ``model``, ``metric``, ``claimed``, ``comparison``, ``logged`` (from the authors' own
    logs), ``authors`` and ``ours`` (measured in each mode), ``verdict`` and ``reason``.
    """
    return ask(
        f"SELECT {_SERIES} AS model, c.metric, c.claimed, c.comparison, "
        "TRY_CAST(json_extract_string(c.reference, 'from_the_authors_logs') AS DOUBLE) AS logged, "
        "a.measured AS authors, o.measured AS ours, v.verdict, v.reason "
        "FROM claims c JOIN verdicts v USING (claim_id) "
        f"LEFT JOIN {_verdicts('authors')} a ON a.claim_id = c.claim_id "
        f"LEFT JOIN {_verdicts('ours')} o ON o.claim_id = c.claim_id "
        f"WHERE c.paper_id = {literal(paper_id)} AND c.derivation IS NOT NULL "
        "AND starts_with(c.metric, 'largest_S_with_') ORDER BY c.ordinal"
    )


def mode_coverage(ask: Ask, paper_id: str) -> pd.DataFrame:
    """Return how many of the paper's claims hold by the runs of one mode, by experiment."""
    return ask(
        "SELECT c.experiment, m.mode, count(*) AS claims, "
        "count(*) FILTER (v.verdict = 'reproduced') AS reproduced, "
        "count(*) FILTER (v.verdict = 'direction reproduced') AS direction_reproduced, "
        "count(*) FILTER (v.verdict = 'not reproduced') AS not_reproduced, "
        "count(*) FILTER (v.verdict IS NULL) AS not_run FROM claims c "
        "JOIN (SELECT experiment, mode FROM mode_coverage) m USING (experiment) "
        "LEFT JOIN mode_verdicts v ON v.claim_id = c.claim_id AND v.mode = m.mode "
        f"WHERE c.paper_id = {literal(paper_id)} GROUP BY ALL ORDER BY min(c.ordinal), m.mode"
    )


def mode_misses(ask: Ask, paper_id: str) -> pd.DataFrame:
    """Return the claims that the runs of one mode do not reproduce, with the reason."""
    return ask(
        "SELECT v.mode, c.statement, c.locator, c.claimed, c.comparison, v.measured, "
        "coalesce(NOT isfinite(v.measured), false) AS diverged, v.reason "
        "FROM mode_verdicts v JOIN claims c USING (claim_id) "
        f"WHERE v.verdict = 'not reproduced' AND c.paper_id = {literal(paper_id)} "
        "ORDER BY v.mode, c.ordinal"
    )


def recall_against_state(ask: Ask, paper_id: str) -> pd.DataFrame:
    """Return accuracy against the bytes of state: the literature's points and the runs'.

    Columns ``mixer``, ``bytes``, ``accuracy``, ``whose``: ``literature``, ``ours`` at its scale,
    or ours at a reduced scale, which is told by its longest sequence. A run counts whether or not
    there is a claim about its mixer and size, if its experiment has claims of the paper. Runs of
    one mixer, size and scale count with their median.
    """
    return ask(
        "SELECT * FROM (SELECT json_extract_string(c.conditions, 'mixer') AS mixer, "
        "TRY_CAST(json_extract_string(c.conditions, 'state_bytes') AS DOUBLE) AS bytes, "
        "c.claimed AS accuracy, 'literature' AS whose FROM claims c "
        f"WHERE c.paper_id = {literal(paper_id)} AND c.metric = 'accuracy' AND c.comparison = '=' "
        "UNION ALL SELECT json_extract_string(r.config, 'mixer'), b.value, median(a.value), "
        f"{_WHOSE_RUN} AS whose_run FROM runs r "
        "JOIN metrics a ON a.run_id = r.run_id AND a.name = 'accuracy' AND a.step IS NULL "
        "JOIN metrics b ON b.run_id = r.run_id AND b.name = 'state_bytes' AND b.step IS NULL "
        "WHERE r.experiment IN (SELECT experiment FROM claims WHERE metric = 'accuracy' "
        f"AND paper_id = {literal(paper_id)}) GROUP BY ALL) "
        "WHERE mixer IS NOT NULL AND bytes > 0 AND isfinite(accuracy) ORDER BY whose, mixer, bytes"
    )


_WHOSE_RUN = (
    "CASE WHEN a.scale = 'paper' THEN 'ours' ELSE concat('ours, ' || a.scale || ' scale', "
    "', sequences to ' || list_max(TRY_CAST(json_extract(r.config, '$.test[*].length') "
    "AS BIGINT[]))) END"
)
