from __future__ import annotations

import json
import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.ledger import from_line, to_line
from records.models import Metric, Run

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def run(*metrics: Metric) -> Run:
    return Run(
        run_id="r", experiment="x", config={"S": 20}, seed=1, code_version="c", environment={},
        started=NOW, finished=NOW, metrics=metrics,
    )  # fmt: skip


def curve(*points: tuple[int, float]) -> tuple[Metric, ...]:
    return tuple(
        Metric(name="curve", value=value, step=step, replay=True) for step, value in points
    )


def test_an_evenly_stepped_curve_is_one_metric_in_the_line() -> None:
    body = json.loads(to_line(run(*curve((100, 0.5), (200, 0.25), (300, 0.125)))))
    assert body["metrics"] == [
        {"name": "curve", "replay": True, "every": 100, "values": [0.5, 0.25, 0.125]}
    ]


@given(
    steps=st.lists(st.integers(0, 9), max_size=6),
    others=st.integers(0, 2),
    value=st.floats(allow_nan=False),
)
def test_a_run_is_read_as_it_was_written(steps: list[int], others: int, value: float) -> None:
    plain = [Metric(name="loss", value=value, claim_id="c")] * others
    written = run(*plain, *curve(*((step, value) for step in steps)), *plain)
    assert from_line(to_line(written)) == written


def test_nan_on_a_curve_is_kept() -> None:
    found = from_line(to_line(run(*curve((1, math.nan), (2, 0.5)))))
    assert isinstance(found, Run)
    assert math.isnan(found.metrics[0].value)


@pytest.mark.parametrize("place", [{}, {"steps": [1]}, {"steps": 5}])
def test_a_curve_whose_steps_do_not_fit_is_an_error(place: dict[str, object]) -> None:
    body = json.loads(to_line(run()))
    body["metrics"] = [{"name": "curve", "values": [1, 2], **place}]
    with pytest.raises(ValueError, match="a curve needs as many 'steps' as 'values'"):
        from_line(json.dumps(body))


def test_a_curve_in_the_long_form_is_still_read() -> None:
    body = json.loads(to_line(run()))
    body["metrics"] = [{"name": "curve", "value": 1.0, "step": 5}]
    found = from_line(json.dumps(body))
    assert isinstance(found, Run)
    assert [(m.step, m.value) for m in found.metrics] == [(5, 1.0)]
