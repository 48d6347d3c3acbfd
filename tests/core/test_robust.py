from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from trainscope.core.robust import (
    ENOUGH,
    GRID,
    MAD_TO_SIGMA,
    block_medians,
    difference_sigma,
    hop_for,
    lag1,
    mad_sigma,
    quantum,
    stretches,
    theil_sen,
    trailing_mad_sigma,
    trailing_median,
)

VALUES = arrays(np.float64, st.integers(1, 60), elements=st.floats(-1e6, 1e6))
QUICK = settings(max_examples=60)


@QUICK
@given(VALUES)
def test_the_scaled_mad_is_that_of_scipy(stats, value):
    expected = 1.4826 * stats.median_abs_deviation(value)
    assert mad_sigma(value) == pytest.approx(expected, rel=1e-12, abs=1e-9)


def test_the_scaled_mad_estimates_sigma_and_samples_long_series():
    noise = np.random.default_rng(0).normal(scale=3.0, size=10 * ENOUGH)
    assert mad_sigma(noise) == pytest.approx(3.0, rel=0.02)
    assert mad_sigma(np.empty(0)) == 0.0


@pytest.mark.parametrize(("n", "hop"), [(1, 1), (GRID, 1), (2 * GRID, 2), (1_000_000, 244)])
def test_a_rolling_statistic_evaluates_a_bounded_number_of_windows(n, hop):
    assert hop_for(n) == hop
    assert n / hop <= 2 * GRID


@QUICK
@given(VALUES, st.integers(8, 20), st.integers(1, 8))
def test_a_trailing_median_knows_only_what_came_before(value, window, start):
    got = trailing_median(value, window, 1, start)
    assert np.isnan(got[:start]).all()
    expected = [np.median(value[max(0, i - window) : i]) for i in range(start, len(value))]
    assert got[start:].tolist() == expected


@pytest.mark.slow
@QUICK
@given(VALUES, st.integers(2, 20))
def test_a_trailing_mad_is_that_of_a_slow_loop(stats, value, window):
    got = trailing_mad_sigma(value, window, 1, 2)
    for i in range(2, len(value)):
        expected = 1.4826 * stats.median_abs_deviation(value[max(0, i - window) : i])
        assert got[i] == pytest.approx(expected, rel=1e-12, abs=1e-9)


def test_a_hop_holds_the_last_answer():
    value = np.random.default_rng(1).normal(size=200)
    exact, held = trailing_median(value, 25, 1, 8), trailing_median(value, 25, 5, 8)
    for i in range(25, 200):
        assert held[i] == exact[25 + (i - 25) // 5 * 5]


@pytest.mark.parametrize("n", [0, 1, 3, 8])
def test_a_series_shorter_than_the_history_has_no_answer(n):
    assert np.isnan(trailing_median(np.arange(float(n)), 25, 1, 8)).all()


@QUICK
@given(VALUES, st.integers(1, 12))
def test_block_medians_cover_every_point_once(value, size):
    blocks = block_medians(value, size)
    count = max(1, len(value) // size)
    edges = [*range(0, count * size, size), len(value)][: count + 1]
    edges[-1] = len(value)
    assert len(blocks) == count
    assert blocks.tolist() == [np.median(value[a:b]) for a, b in itertools.pairwise(edges)]


def test_block_medians_of_nothing_are_nothing():
    assert block_medians(np.empty(0), 5).tolist() == []


@pytest.mark.parametrize("phi", [0.0, 0.3, 0.6, 0.9])
def test_the_autocorrelation_is_recovered(phi):
    rng = np.random.default_rng(2)
    x = np.zeros(20_000)
    for i in range(1, len(x)):
        x[i] = phi * x[i - 1] + rng.normal()
    assert lag1(x) == pytest.approx(phi, abs=0.03)


def test_the_autocorrelation_is_not_fooled_by_an_outlier_and_stays_in_its_range():
    noise = np.random.default_rng(3).normal(size=2000)
    noise[1000] = 1e9
    assert lag1(noise) < 0.1
    assert lag1(np.arange(1000.0)) == 0.95
    assert lag1(np.resize([1.0, -1.0], 100)) == 0.0
    assert lag1(np.full(100, 2.0)) == 0.0
    assert lag1(np.arange(7.0)) == 0.0


@pytest.mark.parametrize("trend", [0.0, 0.01, 1.0])
def test_the_noise_is_measured_under_a_trend_a_step_and_outliers(trend):
    x = np.random.default_rng(4).normal(scale=0.5, size=4000) + trend * np.arange(4000.0)
    x[2000:] += 50.0
    x[::100] += 1000.0
    assert difference_sigma(x) == pytest.approx(0.5, rel=0.1)


def test_the_noise_of_a_few_points_is_their_spread():
    assert difference_sigma(np.array([1.0, 2.0, 3.0, 4.0])) == mad_sigma(np.array([1.0, 2.0, 3.0, 4.0]))
    assert difference_sigma(np.empty(0)) == 0.0


@QUICK
@given(st.integers(2, 60).flatmap(lambda n: arrays(np.float64, n, elements=st.floats(-1e3, 1e3))))
def test_the_slope_is_that_of_scipy(stats, value):
    step = np.cumsum(np.random.default_rng(5).integers(1, 9, len(value))).astype(np.float64)
    assert theil_sen(step, value) == pytest.approx(stats.theilslopes(value, step).slope, rel=1e-9, abs=1e-9)


def test_the_slope_of_a_long_series_is_taken_from_200_points_and_survives_outliers():
    step = np.arange(5000.0)
    value = 0.25 * step
    value[::7] = 1e6
    assert theil_sen(step, value) == pytest.approx(0.25, rel=1e-9)
    assert theil_sen(np.array([1.0]), np.array([2.0])) == 0.0


@pytest.mark.parametrize("digits", [1, 2, 3])
def test_the_rounding_step_of_a_rounded_series_is_found(digits):
    value = np.round(np.random.default_rng(6).normal(scale=10.0 ** (1 - digits), size=20_000), digits)
    assert quantum(value) == pytest.approx(10.0**-digits, rel=1e-6)


def test_a_series_that_was_not_rounded_has_none():
    for value in (np.random.default_rng(7).normal(size=500), np.full(100, 2.0), np.arange(50.0), np.empty(0)):
        assert quantum(value) == 0.0


@QUICK
@given(st.lists(st.booleans(), min_size=1, max_size=60))
def test_stretches_are_the_unbroken_runs_of_true(mask):
    found = stretches(np.array(mask))
    again = np.zeros(len(mask), dtype=bool)
    for begin, end in found:
        assert all(mask[begin:end])
        assert begin == 0 or not mask[begin - 1]
        assert end == len(mask) or not mask[end]
        again[begin:end] = True
    assert again.tolist() == mask


@pytest.mark.parametrize("n", [1, 2, 9, 60, 150])
def test_early_windows_are_those_of_a_slow_loop(n):
    value = np.random.default_rng(n).standard_normal(n)
    found = trailing_median(value, 100, 1, 5)
    spread = trailing_mad_sigma(value, 100, 1, 5)
    at = -1
    for end in range(5, min(100, n), 2):
        at = end
        assert found[end] == np.median(value[:end])
        deviation = np.abs(value[:end] - np.median(value[:end]))
        assert spread[end] == MAD_TO_SIGMA * np.median(deviation)
    assert np.isnan(found[:5]).all()
    assert at < 0 or not np.isnan(found[5 : at + 1]).any()
