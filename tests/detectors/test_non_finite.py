from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from trainscope.core.finding import Severity
from trainscope.core.run import Series
from trainscope.detectors.base import Skipped

from .runs import at, falling, findings, judged, norms, only, run_of


@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "infinite"), (-np.inf, "infinite")])
def test_a_single_point_is_named_with_what_it_is(value, word):
    x = falling()
    x[123] = value
    found = only("non_finite", run_of({"train/loss": x}))
    assert found.message == f"train/loss is {word} at step {at(123)}."
    assert (found.start_step, found.peak_step, found.end_step) == (at(123),) * 3
    assert found.severity is Severity.WARNING


def test_both_kinds_at_once_are_named_together():
    x = falling()
    x[120:124] = [np.nan, np.inf, np.nan, -np.inf]
    assert "is NaN or infinite at 4 of 400 points" in only("non_finite", run_of({"train/loss": x})).message


@pytest.mark.parametrize(
    ("begin", "end", "severity"),
    [(100, 120, Severity.WARNING), (100, 121, Severity.ERROR), (399, 400, Severity.ERROR), (200, 400, Severity.ERROR)],
)
def test_more_than_one_in_twenty_points_or_a_bad_end_is_an_error(begin, end, severity):
    x = falling()
    x[begin:end] = np.nan
    assert only("non_finite", run_of({"train/loss": x})).severity is severity


def test_an_end_in_nan_is_said():
    x = falling()
    x[380:] = np.nan
    assert "stays so to the end" in only("non_finite", run_of({"train/loss": x})).message


def test_metrics_that_turn_bad_together_are_one_incident_named_after_the_loss():
    loss, norm, extra = falling(), norms(), falling()
    norm[200:] = np.inf
    loss[201:] = np.nan
    extra[202:] = np.nan
    found = only("non_finite", run_of({"extra": extra, "train/grad_norm": norm, "train/loss": loss}))
    assert found.metric in {"train/loss", "train/grad_norm"}
    assert found.start_step == at(200)
    assert found.evidence["metrics"] == 3
    assert "extra" in found.message


def test_incidents_far_apart_are_told_apart():
    loss, norm = falling(), norms()
    loss[50] = np.nan
    norm[300] = np.inf
    found = findings("non_finite", run_of({"train/loss": loss, "train/grad_norm": norm}))
    assert sorted((f.metric, f.start_step) for f in found) == [("train/grad_norm", at(300)), ("train/loss", at(50))]


def test_a_run_without_points_is_skipped():
    assert judged("non_finite", run_of({})) == Skipped("needs any metric")


def test_known_false_positive_a_metric_that_is_undefined_by_construction():
    """Explained variance with constant returns is 0 / 0; said as information only."""
    x = falling()
    x[:300] = np.nan
    found = only("non_finite", run_of({"train/explained_variance": x, "train/loss": falling()}))
    assert found.severity is Severity.INFO


def _scaled(overflows, *, scale=1024.0, refused=True, loss=None):
    """Return a run in mixed precision whose gradient is infinite at some points, clipped to NaN."""
    norm, clipped = norms(), norms()
    norm[overflows], clipped[overflows] = np.inf, np.nan
    skipped = np.zeros(400)
    skipped[overflows] = refused
    metrics = {"train/loss": falling() if loss is None else loss, "train/grad_norm": norm}
    metrics |= {"train/grad_norm_after_clip": clipped, "amp/grad_scale": np.full(400, scale)}
    return run_of(metrics | {"amp/step_skipped": skipped})


def test_an_overflow_whose_step_the_scaler_refused_is_part_of_mixed_precision():
    assert findings("non_finite", _scaled([0, 1, 140, 280])) == []


def test_an_overflow_that_the_optimizer_stepped_on_is_found_for_all_its_scale():
    assert only("non_finite", _scaled([140], refused=False)).message == (
        f"train/grad_norm is infinite at step {at(140)}. So is train/grad_norm_after_clip."
    )


def test_an_overflow_that_no_scale_explains_is_found_though_it_was_refused():
    assert only("non_finite", _scaled([140], scale=1.0)).start_step == at(140)


def test_a_refused_step_with_a_loss_that_is_not_finite_is_found():
    loss = falling()
    loss[140] = np.nan
    found = only("non_finite", _scaled([140, 280], loss=loss))
    assert (found.start_step, found.end_step, found.evidence["metrics"]) == (at(140), at(140), 3)


def test_of_the_last_step_it_is_not_known_whether_it_was_refused():
    run = _scaled([399])
    unknown = replace(
        run.series["amp/step_skipped"], step=run.series["amp/step_skipped"].step[:-1], value=np.zeros(399)
    )
    assert findings("non_finite", replace(run, series={**run.series, "amp/step_skipped": unknown})) == []


def test_the_recorder_s_score_of_a_spike_is_no_metric_that_turned_infinite():
    loss = falling()
    loss[140] = np.nan
    score = Series("recorder/spike_score", np.array([at(140)]), np.array([np.inf]))
    run = run_of({"train/loss": loss})
    found = only("non_finite", replace(run, series={**run.series, score.name: score}))
    assert found.message == f"train/loss is NaN at step {at(140)}."
