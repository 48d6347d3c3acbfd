"""What holds for every detector of policies and preferences: quiet on health, finds its fault in its place."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from policies import healthy_policy

from trainscope.core.finding import Severity
from trainscope.core.run import Run
from trainscope.core.settings import Settings
from trainscope.detectors import configure, judge
from trainscope.detectors.base import Skipped

from .policy_runs import POLICY_PLANTED
from .runs import findings, judged, run_of
from .test_properties import with_holes

EACH = pytest.mark.parametrize("detector", POLICY_PLANTED)


@functools.cache
def healthy() -> list[Run]:
    """Sixty healthy runs; half of them are trained, which takes longer than to judge them."""
    return [healthy_policy(np.random.default_rng([77, seed])) for seed in range(60)]


@pytest.mark.slow
@EACH
def test_sixty_healthy_policies_get_no_warning(detector):
    loud = {}
    for seed, run in enumerate(healthy()):
        found = judged(detector, run)
        if not isinstance(found, Skipped) and any(f.severity >= Severity.WARNING for f in found):
            loud[seed] = [f.message for f in found]
    assert not loud


@EACH
def test_the_planted_fault_is_found_where_it_is(detector):
    fault = POLICY_PLANTED[detector]
    (found,) = findings(detector, fault.run)
    assert (found.detector, found.severity) == (detector, fault.severity)
    assert abs(found.start_step - fault.start) <= fault.slack
    assert found.start_step <= found.peak_step <= found.end_step
    assert found.fixes


@EACH
def test_one_fault_is_one_warning(detector):
    found = judge(POLICY_PLANTED[detector].run, configure(Settings())).findings
    assert [f.detector for f in found if f.severity >= POLICY_PLANTED[detector].severity] == [detector]


@EACH
def test_points_that_are_not_numbers_hide_nothing(detector):
    fault = POLICY_PLANTED[detector]
    (found,) = findings(detector, with_holes(fault.run))
    assert found.severity is fault.severity
    assert abs(found.start_step - fault.start) <= fault.slack + 20


@EACH
@pytest.mark.parametrize("points", [1, 2, 5, 11, 30])
def test_a_run_that_is_too_short_is_not_judged(detector, points):
    short = {name: s.value[:points] for name, s in POLICY_PLANTED[detector].run.series.items()}
    assert isinstance(judged(detector, run_of(short)), Skipped)


@EACH
@pytest.mark.parametrize("value", [0.0, 2.0, 1e300, -1e300])
def test_constants_break_nothing(detector, value):
    series = POLICY_PLANTED[detector].run.series
    with np.errstate(all="ignore"):
        judged(detector, run_of({name: np.full(len(s), value) for name, s in series.items()}))
