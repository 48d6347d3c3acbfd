"""What counts as leaving the usual range, on series of known noise."""

from __future__ import annotations

import numpy as np
import pytest

from trainscope.diagnosis.departures import HISTORY, Watch, departures

N = 300
STEP = np.arange(N)


def noisy(seed: int = 0, level: float = 1.0) -> np.ndarray:
    return level * np.exp(0.1 * np.random.default_rng(seed).standard_normal(N))


def test_a_burst_is_found_with_its_ends_and_its_height():
    value = noisy()
    value[180:183] *= 20.0
    (found,) = departures(STEP, value[None], Watch(), 160, 200)
    assert found is not None
    assert (found.step, found.end_step) == (180, 182)
    assert found.usual == pytest.approx(1.0, rel=0.1)
    assert found.value == value[180:183].max()
    assert found.score > 8.0


def test_what_lies_outside_the_window_is_not_looked_at():
    value = noisy()
    value[120] *= 50.0
    value[250] *= 50.0
    assert departures(STEP, value[None], Watch(), 160, 200) == [None]


@pytest.mark.parametrize("seed", range(20))
def test_healthy_noise_and_a_steady_decay_leave_nothing(seed):
    values = np.stack([noisy(seed), noisy(seed + 100) * np.exp(-STEP / 80.0), np.linspace(1.0, 2.0, N)])
    assert departures(STEP, values, Watch(down=True), 160, 200) == [None, None, None]


def test_heavy_tails_vouch_for_themselves():
    """A statistic that jumps like this all the time has not left its range when it does so again."""
    value = noisy()
    value[[60, 90, 130]] *= 20.0
    value[180] *= 20.0
    assert departures(STEP, value[None], Watch(), 160, 200) == [None]


def test_directions_are_kept_apart():
    value = noisy()
    value[180:] /= 20.0
    assert departures(STEP, value[None], Watch(), 160, 200) == [None]
    (found,) = departures(STEP, value[None], Watch(up=False, down=True), 160, 200)
    assert found is not None
    assert found.step == 180


def test_a_series_that_never_moved_is_judged_by_the_size_of_the_change():
    value = np.full(N, 3.0)
    value[180] = 3.01
    assert departures(STEP, value[None], Watch(), 160, 200) == [None]
    value[180] = 9.0
    (found,) = departures(STEP, value[None], Watch(), 160, 200)
    assert found is not None
    assert (found.step, found.usual, found.value) == (180, pytest.approx(3.0), 9.0)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_unit_does_not_matter(scale):
    value = noisy()
    value[180] *= 20.0
    (plain,), (scaled,) = (departures(STEP, (k * value)[None], Watch(), 160, 200) for k in (1.0, scale))
    assert plain is not None
    assert scaled is not None
    assert (plain.step, plain.end_step) == (scaled.step, scaled.end_step)
    assert scaled.score == pytest.approx(plain.score)


def test_values_that_are_not_numbers_are_neither_usual_nor_a_departure():
    value = noisy()
    value[[100, 101, 185]] = np.nan
    value[190] = np.inf
    assert departures(STEP, value[None], Watch(), 160, 200) == [None]


def test_only_nan_and_too_little_history_say_nothing():
    assert departures(STEP, np.full((2, N), np.nan), Watch(), 160, 200) == [None, None]
    value = noisy()
    value[10] *= 50.0
    assert departures(STEP, value[None], Watch(), 5, 15) == [None]


def test_no_more_history_than_it_takes_is_read():
    """What was usual long ago does not count."""
    value = noisy()
    value[: 160 - HISTORY] *= 1000.0
    value[180] *= 20.0
    (found,) = departures(STEP, value[None], Watch(), 160, 200)
    assert found is not None
