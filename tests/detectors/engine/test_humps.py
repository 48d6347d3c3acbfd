from __future__ import annotations

import numpy as np
import pytest

from trainscope.detectors.engine.events import Limits
from trainscope.detectors.engine.humps import humps

from ..runs import falling, level


def with_bump(begin: int, end: int, rise: float, sd: float = 0.15) -> np.ndarray:
    x = level(n=4000, sd=sd)
    x[begin:end] *= 1.0 + rise * np.sin(np.pi * np.arange(end - begin) / (end - begin))
    return x


def test_a_bump_is_found_where_it_is_with_the_highest_point_of_the_run():
    x = with_bump(1500, 1800, 1.5)
    (found,) = humps(x, Limits())
    assert 1500 <= found.start <= 1560
    assert 1740 <= found.end <= 1840
    assert found.top == x[found.peak] == x[1500:1800].max()
    assert found.level == pytest.approx(2.0, rel=0.05)


def test_a_bump_is_found_where_only_two_thirds_of_its_points_go_up():
    x = level(n=4000, sd=0.1)
    up = np.random.default_rng(3).random(300) < 0.67
    x[1500:1800] *= np.where(up, 4.0, 1.0)
    (found,) = humps(x, Limits())
    assert 1480 <= found.start <= 1520
    assert 1780 <= found.end <= 1840


@pytest.mark.parametrize(("rise", "length"), [(0.15, 300), (3.0, 20)])
def test_low_and_short_bumps_are_left_to_others(rise, length):
    assert humps(with_bump(1500, 1500 + length, rise), Limits()) == []


def test_a_shorter_run_is_judged_by_its_points():
    x = with_bump(400, 500, 1.5)[:990]
    assert humps(x, Limits()) == []


@pytest.mark.parametrize("kind", ["gauss", "t3", "laplace", "lognormal"])
@pytest.mark.parametrize("phi", [0.0, 0.6])
def test_noise_has_no_bumps(kind, phi):
    for seed in range(5):
        assert humps(falling(n=3000, seed=seed, sd=0.2, kind=kind, phi=phi), Limits()) == []


def test_a_loss_that_stays_up_is_no_bump():
    x = level(n=4000, sd=0.1)
    x[2000:] *= 2.0
    assert humps(x, Limits()) == []
