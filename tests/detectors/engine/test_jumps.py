from __future__ import annotations

import itertools

import numpy as np
import pytest

from trainscope.detectors.engine.events import Limits, Shape
from trainscope.detectors.engine.jumps import forward_median, jumps

from ..runs import falling, level


def test_the_forward_median_is_that_of_a_slow_loop():
    x = np.random.default_rng(0).normal(size=30)
    for width in (1, 5, 15):
        padded = np.concatenate((x, np.full(width - 1, x[-1])))
        assert forward_median(x, width).tolist() == [np.median(padded[i : i + width]) for i in range(30)]
    assert forward_median(np.empty(0), 5).tolist() == []


@pytest.mark.parametrize(
    ("points", "factor", "after", "shape"),
    [
        (1, 3.0, 1.0, Shape.SPIKE),
        (5, 2.0, 1.0, Shape.SPIKE),
        (3, 3.0, 1.13, Shape.UNRECOVERED),
        (3, 1.3, 1.2, Shape.SHIFT),
    ],
)
def test_a_jump_is_classed_by_how_it_ends(points, factor, after, shape):
    x = level()
    x[200 : 200 + points] *= factor
    x[200 + points :] *= after
    (event,) = jumps(x, Limits())
    assert (event.shape, event.start) == (shape, 200)
    if shape is not Shape.SHIFT:
        assert event.top == x[event.peak] == x[200 : 200 + points].max()
    assert event.level == pytest.approx(2.0, rel=0.02)


def test_a_run_that_ends_inside_a_jump_diverges():
    x = level()
    x[397:] *= [2.0, 3.0, 4.0]
    (event,) = jumps(x, Limits())
    assert (event.shape, event.start, event.end) == (Shape.DIVERGENCE, 397, 399)


def test_jumps_come_in_order_and_do_not_touch():
    x = falling(n=2000)
    for begin in range(100, 1900, 150):
        x[begin : begin + 3] *= 1.5 + begin / 1000.0
    found = jumps(x, Limits())
    assert [e.start for e in found] == list(range(100, 1900, 150))
    assert all(one.end < other.start for one, other in itertools.pairwise(found))


def test_a_large_incident_hides_no_small_one():
    """The second is within the noise that the first makes, until the first is taken out."""
    x = level()
    x[200:215] *= np.linspace(20.0, 10.0, 15)
    x[260] *= 1.4
    assert [e.start for e in jumps(x, Limits())] == [200, 260]


@pytest.mark.parametrize("n", [0, 1, 5, 9, 12])
def test_a_short_series_has_no_jumps(n):
    assert jumps(np.linspace(3.0, 2.0, n), Limits()) == []


def short_with_bursts(*starts: int, sd: float = 0.03) -> np.ndarray:
    x = 0.5 * level(n=60, sd=sd)
    for start in starts:
        x[start : start + 5] *= 3.0, 12.0, 9.0, 5.0, 2.5
    return x


def test_bursts_that_are_a_third_of_a_short_series_are_each_found():
    x = short_with_bursts(12, 28, 44)
    found = jumps(x, Limits())
    assert [(e.shape, e.start, e.peak) for e in found] == [(Shape.SPIKE, s, s + 1) for s in (12, 28, 44)]
    assert all(s + 4 <= e.end <= s + 5 for s, e in zip((12, 28, 44), found, strict=True))


def test_a_blow_up_at_the_end_does_not_hide_what_came_before():
    x = short_with_bursts(12, 28)
    x[-3:] = 1e3, 1e9, 1e18
    assert [(e.shape, e.start) for e in jumps(x, Limits())] == [
        (Shape.SPIKE, 12),
        (Shape.SPIKE, 28),
        (Shape.DIVERGENCE, 57),
    ]


@pytest.mark.parametrize("kind", ["gauss", "t3", "laplace", "lognormal"])
def test_a_short_series_of_noise_has_no_bursts(kind):
    for seed in range(40):
        assert jumps(falling(n=60, seed=seed, sd=0.15, kind=kind, phi=0.3), Limits()) == []


def test_a_loss_that_wanders_up_and_back_does_not_jump():
    """As that of a wide residual network does for twenty epochs after each drop of the learning rate."""
    way = np.interp(np.arange(119), [0, 59, 60, 65, 78, 85, 118], [0.35, 0.277, 0.135, 0.0655, 0.083, 0.0845, 0.076])
    for seed in range(20):
        x = way * 0.5 * level(n=119, seed=seed, sd=0.02)
        assert jumps(x, Limits()) == []
    x[105:108] *= 1.5
    assert [(e.shape, e.start) for e in jumps(x, Limits())] == [(Shape.SPIKE, 105)]
