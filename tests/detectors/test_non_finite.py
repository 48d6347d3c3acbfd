from __future__ import annotations

import numpy as np
import pytest

from trainscope.core.finding import Severity
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
