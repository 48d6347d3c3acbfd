from __future__ import annotations

import numpy as np
import pytest

from trainscope.detectors.engine.gaps import few_bursts

CALM = 0.1 * np.abs(np.sin(np.arange(60.0)))


def with_bursts(*starts: int, tops: float = 5.0, calm: np.ndarray = CALM) -> np.ndarray:
    height = calm.copy()
    for start in starts:
        height[start : start + 3] = tops, 0.6 * tops, 0.3 * tops
    return height


def test_the_points_of_two_to_five_bursts_are_returned():
    for starts in ((10, 30), (10, 20, 40), (5, 15, 25, 35, 45)):
        expected = sorted(start + k for start in starts for k in range(3))
        assert np.flatnonzero(few_bursts(with_bursts(*starts))).tolist() == expected


def test_bursts_of_a_third_of_a_short_series_are_found():
    height = CALM.copy()
    for start in (5, 20, 35, 50):
        height[start : start + 5] = 1.0, 8.0, 6.0, 3.0, 1.2
    assert np.flatnonzero(few_bursts(height)).tolist() == [s + k for s in (5, 20, 35, 50) for k in (1, 2, 3)]


@pytest.mark.parametrize("starts", [(), (30,), (3, 12, 21, 30, 39, 48)])
def test_one_burst_and_more_than_five_are_left_to_the_tail_of_the_run(starts):
    assert not few_bursts(with_bursts(*starts)).any()


def test_there_is_no_gap_where_heights_of_all_sizes_lie_between():
    height = with_bursts(10, 40)
    height[[20, 25, 30]] = 2.5, 1.2, 0.5
    assert not few_bursts(height).any()


def test_low_bursts_are_left_out_however_calm_the_rest_is():
    assert not few_bursts(with_bursts(10, 40, tops=0.5, calm=0.01 * CALM)).any()


def test_a_series_that_is_bursts_for_the_most_part_has_no_calm_to_stand_out_of():
    height = CALM.copy()
    for start in (2, 16, 30, 44):
        height[start : start + 9] = 5.0
    assert not few_bursts(height).any()


def test_a_series_of_less_than_forty_points_is_not_judged():
    assert not few_bursts(with_bursts(5, 20)[:39]).any()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["t3", "lognormal"])
def test_noise_with_a_wide_tail_has_such_a_gap_less_than_once_in_a_thousand_series(kind):
    rng = np.random.default_rng(1)
    shape = (3000, 80)
    draws = rng.standard_t(3, shape) if kind == "t3" else np.exp(0.5 * rng.normal(size=shape)) - 1.0
    assert sum(few_bursts(row / np.std(draws)).any() for row in draws) <= 3
