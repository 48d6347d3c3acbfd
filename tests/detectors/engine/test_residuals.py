from __future__ import annotations

import numpy as np
import pytest
from synthetic import noise

from trainscope.detectors.engine.events import Limits
from trainscope.detectors.engine.residuals import LEVEL, START, residuals, standing_out

from ..runs import falling, level


def test_nothing_is_judged_before_there_is_a_history():
    r = residuals(falling())
    assert np.isnan(r.level[:START]).all()
    assert (np.abs(r.z[:START]) < 1e-300).all()
    assert np.isfinite(r.level[START:]).all()
    assert np.isfinite(r.z).all()


def test_the_level_is_the_median_of_the_points_before():
    x = falling()
    r = residuals(x)
    for i in (START, 20, LEVEL, 100, 399):
        assert r.level[i] == np.median(x[max(0, i - LEVEL) : i])


def test_the_noise_is_that_of_the_run_with_and_without_a_burst():
    x = level(n=1000, sd=0.02)
    x[500:510] *= 5.0
    assert residuals(x).sigma[100:] == pytest.approx(0.04, rel=0.5)


@pytest.mark.parametrize("phi", [0.0, 0.3, 0.6])
def test_the_autocorrelation_of_the_noise_is_recovered(phi):
    x = 2.0 * (1.0 + 0.02 * noise(np.random.default_rng(0), 4000, "gauss", phi))
    assert residuals(x).phi == pytest.approx(phi, abs=0.15)


def test_a_change_of_the_noise_is_followed():
    x = level(n=2000, sd=0.01)
    x[1000:] += level(n=1000, seed=1, sd=0.05) - 2.0
    r = residuals(x)
    assert np.median(r.sigma[1300:]) > 2.5 * np.median(r.sigma[300:700])


def test_the_points_that_stand_out_are_those_that_were_put_there():
    x = level(n=1000, sd=0.01)
    x[[300, 301, 700]] *= [1.5, 1.6, 1.4]
    assert standing_out(x, residuals(x), Limits()).tolist() == [300, 301, 700]


def test_points_below_the_level_do_not_stand_out():
    x = level(n=1000, sd=0.01)
    x[[300, 700]] *= 0.3
    assert standing_out(x, residuals(x), Limits()).tolist() == []


@pytest.mark.parametrize(("sd", "found"), [(0.03, [120]), (0.15, [])])
def test_a_lone_jump_counts_sooner_where_the_loss_is_the_mean_of_many_samples(sd, found):
    x = 3.0 * (1.0 + sd * np.clip(noise(np.random.default_rng(0), 180, "t3", 0.0), -4.0, 4.0))
    r = residuals(x)
    highest = np.sort(r.z[START:])[-1]
    x[120] = r.level[120] + 7.0 * highest * r.sigma[120]
    assert standing_out(x, residuals(x), Limits()).tolist() == found
