from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainscope.report.axis import nice_number, nice_ticks, step_axis, tick_labels, value_axis

SIZES = st.floats(min_value=-1e308, max_value=1e308, allow_nan=False)


@pytest.mark.parametrize(
    ("value", "least", "nearest"),
    [(1, 1, 1), (1.2, 2, 1), (1.7, 2, 2), (2.9, 5, 2), (3.1, 5, 5), (6.9, 10, 5), (0.03, 0.05, 0.05)],
)  # fmt: skip
def test_nice_numbers_are_those_of_the_published_algorithm(value, least, nearest):
    assert nice_number(value, nearest=False) == pytest.approx(least)
    assert nice_number(value, nearest=True) == pytest.approx(nearest)


@given(st.floats(min_value=1e-290, max_value=1e290))
def test_a_nice_number_is_one_two_or_five_times_a_power_of_ten(value):
    nice = nice_number(value, nearest=False)
    mantissa = float(f"{nice:.6e}".split("e")[0])
    assert mantissa in {1.0, 2.0, 5.0}
    assert value * (1 - 1e-6) <= nice <= 10 * value


@given(SIZES, SIZES, st.integers(min_value=3, max_value=12))
def test_ticks_are_few_increasing_and_inside(a, b, count):
    low, high = min(a, b), max(a, b)
    axis = value_axis(np.array([low, high]), count)
    ticks = np.array(axis.ticks)
    assert 1 <= len(ticks) <= 2 * count + 3
    assert (np.diff(ticks) > 0).all()
    assert axis.low < axis.high
    slack = 1e-9 * (axis.high / 2 - axis.low / 2)
    assert axis.low - slack <= ticks[0]
    assert ticks[-1] <= axis.high + slack
    assert len(set(axis.labels)) == len(axis.labels)


@given(st.lists(SIZES, min_size=1, max_size=50))
def test_every_share_is_between_zero_and_one(values):
    axis = value_axis(np.array(values))
    share = axis.share(np.array([*values, 1e308, -1e308]))
    assert np.isfinite(share).all()
    assert ((share >= 0) & (share <= 1)).all()


def test_ticks_of_a_common_range_are_round():
    assert nice_ticks(0, 10.4, 6) == (0, 2, 4, 6, 8, 10)


@pytest.mark.parametrize("values", [[2.0, 9.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0], [1e-9, 3e-9]])
def test_a_metric_that_is_never_negative_has_an_axis_that_is_not_either(values):
    assert value_axis(np.array(values)).low >= 0


def test_the_axis_starts_at_zero_unless_the_data_use_little_of_it():
    assert value_axis(np.linspace(2, 9, 50)).low == 0
    assert value_axis(np.linspace(0.9, 0.99, 50)).low > 0.8


def test_outliers_do_not_flatten_the_rest():
    values = np.r_[np.linspace(3, 2, 500), 59.7]
    assert value_axis(values).high < 4


def test_a_maximum_within_one_and_a_half_times_the_99th_percentile_is_shown_in_full():
    values = np.r_[np.full(500, 2.0), 2.9]
    assert value_axis(values).high >= 2.9


@pytest.mark.parametrize("seed", range(5))
def test_gaussian_noise_around_zero_is_shown_in_full(seed):
    values = np.random.default_rng(seed).normal(size=100_000)
    axis = value_axis(values)
    assert axis.low <= values.min()
    assert axis.high >= values.max()


def test_outliers_on_both_sides_of_a_signed_metric_are_left_out():
    values = np.r_[np.random.default_rng(0).normal(size=1000), 400, -500]
    axis = value_axis(values)
    assert axis.low > -8
    assert axis.high < 8


def test_decades_get_a_log_scale_unless_it_is_not_wanted():
    values = np.geomspace(1e-3, 10, 200)
    axis = value_axis(values)
    assert axis.log
    assert axis.share(1e-3) == pytest.approx(0)
    assert axis.share(0.1) == pytest.approx(0.5)
    assert not value_axis(values, allow_log=False).log


def test_zeros_and_negatives_never_get_a_log_scale():
    assert not value_axis(np.r_[0, np.geomspace(1e-3, 10, 200)]).log
    assert not value_axis(np.r_[-1, np.geomspace(1e-3, 10, 200)]).log


@pytest.mark.parametrize("values", [[], [np.nan], [np.inf, -np.inf, np.nan]])
def test_nothing_finite_gives_an_axis_without_ticks(values):
    assert value_axis(np.array(values)).ticks == ()


@pytest.mark.parametrize(
    ("first", "last"), [(0, 799), (0, 1_000_000), (5, 5), (0, 1), (3, 5), (10**15, 10**15 + 7), (-5, 5)]
)
def test_steps_are_labelled_by_whole_numbers_within_the_data(first, last):
    axis = step_axis(first, last, 5)
    assert all(t == int(t) and first <= t <= last for t in axis.ticks)
    assert len(axis.ticks) >= 1
    assert len(set(axis.labels)) == len(axis.labels)


@pytest.mark.parametrize(
    ("value", "step", "text"),
    [
        (0, 5, "0"),
        (0.25, 0.05, "0.25"),
        (2, 2, "2"),
        (12_000, 2000, "12k"),
        (1_500_000, 500_000, "1.5M"),
        (2000, 1000, "2k"),
        (3e-4, 1e-4, "3e-4"),
        (1.5e-4, 5e-5, "1.5e-4"),
        (-0.5, 0.5, "-0.5"),
        (2e20, 1e20, "2e20"),
        (800, 200, "800"),
        (0.425, 0.025, "0.425"),
        (2500, 2500, "2.5k"),
        (2.5e-4, 2.5e-5, "2.50e-4"),
    ],
)
def test_ticks_are_written_as_people_write_them(value, step, text):
    assert tick_labels((value,), step) == (text,)


def test_ticks_of_one_axis_share_a_unit():
    assert tick_labels((9900, 10_000, 10_100), 100) == ("9.9k", "10.0k", "10.1k")


def test_outliers_stay_on_an_axis_that_may_not_be_capped():
    values = np.r_[np.linspace(3, 2, 500), 59.7]
    assert value_axis(values, allow_cap=False).high >= 59.7
