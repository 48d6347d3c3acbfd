from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainscope.core.run import Run, Series


def run_with(**series: Series) -> Run:
    return Run("a", "a.csv", "csv", series)


def test_a_series_takes_anything_that_is_numbers():
    s = Series("loss", [1, 2, 5], [3, 2.5, np.nan])
    assert (s.step.dtype, s.value.dtype, len(s)) == (np.int64, np.float64, 3)


@pytest.mark.parametrize(
    ("step", "value", "time", "reason"),
    [
        ([1, 2], [1.0], None, "equally long"),
        ([[1, 2]], [[1.0, 2.0]], None, "1-d"),
        ([1, 1], [1.0, 2.0], None, "strictly increasing"),
        ([2, 1], [1.0, 2.0], None, "strictly increasing"),
        ([1, 2], [1.0, 2.0], np.array([0.0]), "time must be as long"),
    ],
)
def test_a_series_that_is_none_is_refused_by_name(step, value, time, reason):
    with pytest.raises(ValueError, match=f"train/loss: .*{reason}"):
        Series("train/loss", step, value, time)


def test_finite_leaves_out_nan_and_infinity_with_their_steps_and_times():
    s = Series("loss", [1, 2, 3, 4], [1.0, np.nan, -np.inf, 4.0], np.array([10.0, 20.0, 30.0, 40.0]))
    kept = s.finite()
    assert (kept.step.tolist(), kept.value.tolist(), kept.time.tolist()) == ([1, 4], [1.0, 4.0], [10.0, 40.0])


def test_finite_is_the_series_itself_where_nothing_is_left_out():
    """The caches of the detectors are keyed on it."""
    s = Series("loss", [1, 2], [1.0, 2.0])
    assert s.finite() is s


@settings(max_examples=50)
@given(st.lists(st.floats(), max_size=30))
def test_finite_keeps_exactly_the_numbers(values):
    kept = Series("x", np.arange(len(values)), values).finite()
    assert np.isfinite(kept.value).all()
    assert kept.step.tolist() == [i for i, v in enumerate(values) if np.isfinite(v)]


def test_a_run_gives_a_metric_only_if_it_has_points():
    run = run_with(loss=Series("loss", [1], [2.0]), none=Series("none", [], []))
    assert run.get("loss").value.tolist() == [2.0]
    assert run.get("none") is None
    assert run.get("other") is None


def test_a_run_spans_all_its_metrics():
    run = run_with(a=Series("a", [5, 9], [1, 1]), b=Series("b", [2, 7], [1, 1]), none=Series("none", [], []))
    assert (run.first_step, run.last_step) == (2, 9)
    assert (run_with().first_step, run_with().last_step) == (None, None)
