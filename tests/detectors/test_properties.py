"""What holds for every detector: quiet on health, finds its fault in its place, and copes with debris."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from synthetic import Setting, healthy

from trainscope.core.finding import Severity
from trainscope.core.run import Run, Series
from trainscope.core.settings import Settings
from trainscope.detectors import DETECTORS, configure, judge
from trainscope.detectors.base import Skipped

from .planted import PLANTED
from .runs import ROWS, findings, judged, run_of, scaled

IDS = [d.id for d in DETECTORS if d.id in PLANTED]
SEEDS = range(20)
NOISE = ("gauss", "t3", "laplace", "lognormal")
IN_UNITS_OF_ITS_OWN = {"loss_floor", "expectation", "throughput", "epoch_order", "epoch_steps"}
"""loss_floor knows what a cross-entropy starts at, throughput knows seconds, epochs are counted; an expectation is the
user's number."""
METRICS = ("train/loss", "eval/loss", "train/grad_norm", "learning_rate", "train/step_time")
EXPECT = {"expectation": {"expect": ("train/loss last < 1000000",)}}


@cache
def a_healthy_run(seed: int) -> Run:
    """Noise of every law and of lag-1 autocorrelation 0 and 0.6, taking turns."""
    setting = Setting(300, NOISE[seed % 4], 0.6 if seed % 3 == 2 else 0.0, 0.02)
    return healthy(np.random.default_rng(seed), setting)


def with_holes(run: Run, share: float = 0.03) -> Run:
    """Return `run` with NaN and infinity in a few points, away from both ends."""
    rng = np.random.default_rng(11)
    series = {}
    for name, s in run.series.items():
        value = s.value.copy()
        pick = rng.choice(np.arange(1, len(s) - 1), max(1, int(share * len(s))), replace=False)
        value[pick] = rng.choice([np.nan, np.inf, -np.inf], len(pick))
        series[name] = Series(name, s.step, value)
    return replace(run, series=series)


def verdict(found: list) -> list[tuple[object, ...]]:
    return [(f.severity, f.title, f.metric, f.start_step, f.end_step, f.peak_step) for f in found]


@pytest.mark.parametrize("detector", IDS)
def test_twenty_healthy_runs_get_no_finding(detector):
    loud = {}
    for seed in SEEDS:
        found = judged(detector, a_healthy_run(seed), **EXPECT.get(detector, {}))
        if not isinstance(found, Skipped) and found:
            loud[seed] = [f.message for f in found]
    assert not loud


@pytest.mark.parametrize("detector", IDS)
def test_the_planted_fault_is_found_where_it_is(detector):
    fault = PLANTED[detector]
    (found,) = findings(detector, fault.run, **(fault.params or {}))
    assert found.detector == detector
    assert found.severity is fault.severity
    assert abs(found.start_step - fault.start) <= fault.slack
    assert found.start_step <= found.peak_step <= found.end_step
    assert found.fixes or detector == "expectation"


@pytest.mark.parametrize("detector", IDS)
def test_one_fault_is_one_finding(detector):
    fault = PLANTED[detector]
    options = {detector: dict(fault.params)} if fault.params else {}
    found = judge(fault.run, configure(Settings(detectors=options))).findings
    assert [f.detector for f in found] == [detector]


@pytest.mark.parametrize("factor", [1e6, 1e-6])
@pytest.mark.parametrize("detector", [d for d in IDS if d not in IN_UNITS_OF_ITS_OWN])
def test_the_verdict_does_not_depend_on_the_unit(detector, factor):
    fault = PLANTED[detector]
    expected = verdict(findings(detector, fault.run))
    assert verdict(findings(detector, scaled(fault.run, factor))) == expected


@pytest.mark.parametrize("factor", [1e6, 1e-6])
def test_healthy_runs_stay_quiet_in_another_unit(factor):
    for detector in IDS:
        for seed in range(6):
            found = judged(detector, scaled(a_healthy_run(seed), factor))
            assert isinstance(found, Skipped) or not found, (seed, [f.message for f in found])


@pytest.mark.parametrize("detector", [d for d in IDS if d != "non_finite"])
def test_points_that_are_not_numbers_hide_nothing(detector):
    fault = PLANTED[detector]
    found = findings(detector, with_holes(fault.run), **(fault.params or {}))
    worst = max(found, key=lambda f: f.severity)
    assert worst.severity is fault.severity
    assert abs(worst.start_step - fault.start) <= fault.slack + 20


@pytest.mark.parametrize("detector", [d for d in IDS if d != "non_finite"])
def test_points_that_are_not_numbers_are_nothing_but_non_finite(detector):
    for seed in range(6):
        found = judged(detector, with_holes(a_healthy_run(seed)))
        assert isinstance(found, Skipped) or not found, (seed, [f.message for f in found])


def constant(n: int, value: float) -> Run:
    return run_of({name: np.full(n, value) for name in METRICS})


MAY_SPEAK_OF_A_CONSTANT = {"plateau", "grad_norm"}
MAY_SPEAK_OF_ZEROS = {"plateau", "lr_zero"}


@pytest.mark.parametrize("detector", IDS)
def test_a_constant_run_is_not_broken_in_any_other_way(detector):
    found = judged(detector, constant(ROWS, 2.0))
    if detector not in MAY_SPEAK_OF_A_CONSTANT:
        assert isinstance(found, Skipped) or not found, [f.message for f in found]
    else:
        assert len(found) == 1


@pytest.mark.parametrize("detector", IDS)
def test_a_run_of_zeros_is_not_broken_in_any_other_way(detector):
    found = judged(detector, constant(ROWS, 0.0))
    if detector not in MAY_SPEAK_OF_ZEROS:
        assert isinstance(found, Skipped) or not found, [f.message for f in found]


@pytest.mark.parametrize("points", [1, 2, 3, 5, 8, 11])
@pytest.mark.parametrize("detector", IDS)
def test_a_run_that_is_too_short_is_not_judged(detector, points):
    """A few points of a falling loss say nothing, but must not break anything."""
    value = {name: np.linspace(3.0, 2.0, points) for name in METRICS}
    found = judged(detector, run_of(value))
    assert isinstance(found, Skipped) or not found, [f.message for f in found]
    if isinstance(found, Skipped):
        assert found.reason
        assert not found.reason.endswith(".")


@pytest.mark.parametrize("detector", IDS)
def test_a_run_without_points_or_only_of_nan_breaks_nothing(detector):
    nothing = judged(detector, run_of({}))
    assert isinstance(nothing, Skipped) or not nothing
    hollow = judged(detector, constant(50, float("nan")))
    if detector == "non_finite":
        assert max(f.severity for f in hollow) is Severity.ERROR
    else:
        assert isinstance(hollow, Skipped) or not hollow, [f.message for f in hollow]


@pytest.mark.parametrize(("low", "high"), [(-300, 300), (300, 308), (-308, -300)])
def test_values_near_the_limits_of_floats_break_nothing(low, high):
    """Warnings are errors here: an overflow that leaks would fail."""
    chosen = configure(Settings(expect=["train/loss mean < 5"]))
    for seed in range(3):
        rng = np.random.default_rng(seed)
        judge(run_of({name: 10.0 ** rng.uniform(low, high, 120) for name in METRICS}), chosen)


@pytest.mark.parametrize("value", [1e300, 1.7e308, -1.7e308, 5e-324])
def test_a_constant_near_the_limits_of_floats_breaks_nothing(value):
    sign = np.where(np.arange(120) % 2, 1.0, -1.0)
    for pattern in (np.full(120, value), value * sign, np.where(np.arange(120) < 60, value, 1.0)):
        judge(run_of(dict.fromkeys(METRICS, pattern)), configure(Settings()))


@pytest.mark.parametrize("detector", IDS)
def test_the_same_run_gives_the_same_findings(detector):
    fault = PLANTED[detector]
    params = fault.params or {}
    copies = {n: Series(n, s.step.copy(), s.value.copy()) for n, s in fault.run.series.items()}
    again = replace(fault.run, series=copies)
    assert findings(detector, fault.run, **params) == findings(detector, again, **params)
