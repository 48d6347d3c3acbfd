from __future__ import annotations

import numpy as np
import pytest

from trainscope.detectors.engine.events import Limits, Shape
from trainscope.detectors.engine.shifts import end_rise, shifts

from ..runs import falling, level


@pytest.mark.parametrize("sd", [0.01, 0.02, 0.03])
@pytest.mark.parametrize("seed", range(3))
def test_a_step_on_a_decaying_curve_is_found_whatever_the_decay_did_before(sd, seed):
    """The lag behind the early decay is neither noise nor autocorrelation."""
    x = falling(n=2000, seed=seed, sd=sd)
    x[1200:] *= 1.1
    (event,) = shifts(x, Limits())
    assert event.shape is Shape.SHIFT
    assert abs(event.start - 1200) <= 40
    assert event.end == 1999


@pytest.mark.parametrize("phi", [0.0, 0.6, 0.8])
def test_noise_is_no_shift_however_it_is_correlated(phi):
    for seed in range(4):
        assert shifts(falling(n=1500, seed=seed, sd=0.04, phi=phi), Limits()) == []


def test_a_shift_ends_where_the_level_comes_back():
    x = level(n=2000)
    x[800:1200] *= 1.1
    event = shifts(x, Limits())[0]
    assert abs(event.start - 800) <= 20
    assert abs(event.end - 1200) <= 20


def test_a_short_series_has_no_shifts():
    assert shifts(level(n=59), Limits()) == []


@pytest.mark.parametrize("rise", [0.3, 1.0, 5.0])
def test_the_rise_at_the_end_is_measured_against_the_best(rise):
    x = falling()
    x[250:] *= np.linspace(1.0, 1.0 + rise, 150)
    event = end_rise(x, Limits())
    assert event is not None
    assert (event.shape, event.end) == (Shape.DIVERGENCE, 399)
    assert (event.after - event.level) / event.level == pytest.approx(rise, rel=0.25)


def test_a_run_that_ends_at_its_best_has_not_risen():
    assert end_rise(falling(), Limits()) is None
    assert end_rise(falling(n=19), Limits()) is None


def test_a_last_block_that_is_not_up_is_no_rise():
    x = falling()
    x[250:] *= np.linspace(1.0, 2.0, 150)
    x[-6:] /= 2.0
    assert end_rise(x, Limits()) is None


def test_a_run_that_often_was_up_there_has_not_diverged_in_the_end():
    x = level()
    x[(np.arange(400) // 20) % 2 == 1] *= 1.4
    assert end_rise(x, Limits()) is None
