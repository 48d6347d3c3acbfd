from __future__ import annotations

import numpy as np
import pytest
from synthetic import NOISES, noise

from trainscope.core.noise import LEAST
from trainscope.detectors.engine.noise import grown_noise

N, ONSET = 1200, 900


def grown(seed: int, kind: str = "gauss", times: float = 4.0, sd: float = 0.03) -> np.ndarray:
    e = noise(np.random.default_rng(seed), N, kind, 0.3)
    e[ONSET:] *= times
    return 2.0 * (1.0 + sd * e)


@pytest.mark.parametrize("kind", NOISES)
def test_noise_four_times_as_large_is_found_near_its_first_point_and_measured(kind):
    found = [grown_noise(grown(seed, kind), LEAST) for seed in range(6)]
    assert all(g is not None and g.end == N - 1 for g in found)
    assert np.median([abs(g.start - ONSET) for g in found]) <= 6
    # What was before is the largest of many windows.
    assert 2.0 <= np.median([g.after / g.before for g in found]) <= 4.0


@pytest.mark.parametrize("kind", NOISES)
def test_steady_noise_has_not_grown(kind):
    assert [grown_noise(grown(seed, kind, times=1.0), LEAST) for seed in range(6)] == [None] * 6


def test_noise_that_grows_by_little_and_little_is_not_reported():
    e = np.random.default_rng(0).normal(size=3000)
    assert grown_noise(2.0 * (1.0 + 0.02 * np.linspace(1.0, 4.0, 3000) * e), LEAST) is None


def test_noise_that_the_run_had_before_is_no_news():
    x = grown(1)
    x[300:500] = 2.0 + 4.0 * (x[300:500] - 2.0)
    found = grown_noise(x, LEAST)
    assert found is not None
    assert found.start < 520


def test_noise_too_small_to_matter_is_left_out():
    assert grown_noise(grown(2, times=4.0, sd=0.002), LEAST) is None


def test_a_loss_that_rises_tenfold_with_its_noise_has_not_grown_noisy():
    e = np.random.default_rng(3).normal(size=N)
    level = np.where(np.arange(N) < ONSET, 1.0, 10.0)
    assert grown_noise(level * (1.0 + 0.03 * e), LEAST) is None


def test_a_loss_that_begins_to_learn_may_be_noisier():
    e = np.random.default_rng(4).normal(size=N)
    late = np.arange(N) >= ONSET
    level = np.where(late, 1.0 + np.exp(-(np.arange(N) - ONSET) / 100.0), 2.0)
    assert grown_noise(level + np.where(late, 0.05, 0.01) * e, LEAST) is None


def test_a_burst_is_reported_only_while_it_is_the_end_of_the_log():
    x = grown(5)
    x[ONSET + 50 :] = 2.0 + (x[ONSET + 50 :] - 2.0) / 4.0
    assert grown_noise(x[: ONSET + 45], LEAST) is not None
    assert grown_noise(x, LEAST) is None


def test_a_long_series_is_thinned_and_its_onset_is_found_all_the_same():
    e = np.random.default_rng(6).normal(size=50_000)
    e[40_000:] *= 4.0
    found = grown_noise(2.0 * (1.0 + 0.03 * e), LEAST)
    assert found is not None
    assert abs(found.start - 40_000) < 200
