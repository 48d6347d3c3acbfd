from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainscope.core.change import MOST_ALARMS as LIMIT
from trainscope.core.change import SLACK, Cusum, cusum_alarms


def by_the_book(z: np.ndarray, slack: float, threshold: float) -> list[tuple[int, int]]:
    """Page's recursion, a point at a time."""
    alarms: list[tuple[int, int]] = []
    total, onset = 0.0, 0
    for i, x in enumerate(z):
        total += x - slack
        if total <= 0.0:
            total, onset = 0.0, i + 1
        if total >= threshold:
            alarms.append((onset, i))
            total, onset = 0.0, i + 1
            if len(alarms) >= LIMIT:
                break
    return alarms


# Quarters are exact in binary, so that both ways of summing agree to the last bit.
QUARTERS = st.lists(st.integers(-16, 16).map(lambda k: k / 4.0), max_size=120).map(np.array)


@pytest.mark.slow
@settings(max_examples=200)
@given(QUARTERS, st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.sampled_from([0.25, 1.0, 4.0, 12.0]))
def test_the_alarms_are_those_of_a_plain_loop(z, slack, threshold):
    assert cusum_alarms(z, slack, threshold) == by_the_book(z, slack, threshold)


def live(z: np.ndarray, slack: float, threshold: float) -> list[int]:
    """Alarms of the recursion that the live detector feeds."""
    alarms: list[int] = []
    cusum = Cusum(slack)
    for i, x in enumerate(z):
        if cusum.add(float(x)) >= threshold:
            alarms.append(i)
            cusum.restart()
    return alarms[:LIMIT]


@settings(max_examples=200)
@given(QUARTERS, st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.sampled_from([0.25, 1.0, 4.0, 12.0]))
def test_live_and_after_the_fact_alarm_at_the_same_points(z, slack, threshold):
    assert live(z, slack, threshold) == [alarm for _, alarm in cusum_alarms(z, slack, threshold)]


@pytest.mark.parametrize("phi", [0.0, 0.3, 0.6])
def test_live_and_after_the_fact_agree_on_noise_with_shifts_in_it(phi):
    rng = np.random.default_rng(7)
    z = rng.normal(size=5_000)
    for i in range(1, len(z)):
        z[i] += phi * z[i - 1]
    z[1000:1040] += 2.0
    z[3000:] += 1.0
    found = live(np.clip(z, -4, 4), SLACK, 12.0)
    assert len(found) > 5
    assert found == [alarm for _, alarm in cusum_alarms(np.clip(z, -4, 4), SLACK, 12.0)]


def test_a_shift_is_dated_at_its_first_point():
    z = np.concatenate((np.full(100, -0.5), np.full(30, 2.0)))
    ((onset, alarm), *_) = cusum_alarms(z, 0.5, 12.0)
    assert (onset, alarm) == (100, 107)


def test_a_shift_downwards_is_no_alarm():
    assert cusum_alarms(np.concatenate((np.zeros(50), np.full(50, -3.0))), 0.5, 5.0) == []


def test_the_number_of_alarms_is_bounded():
    assert len(cusum_alarms(np.full(10_000, 10.0), 0.5, 1.0)) == LIMIT


@pytest.mark.parametrize("n", [0, 1])
def test_a_series_without_points_has_no_alarm(n):
    assert cusum_alarms(np.zeros(n), 0.5, 1.0) == []


def test_alarms_in_noise_are_as_rare_as_the_theory_says():
    """At slack 0.5 and threshold 5 the exact run length between alarms is 931 points (Markov chain)."""
    z = np.random.default_rng(0).normal(size=40_000)
    assert len(cusum_alarms(z, 0.5, 5.0)) == pytest.approx(40_000 / 931, rel=0.35)
