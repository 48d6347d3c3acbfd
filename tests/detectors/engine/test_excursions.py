from __future__ import annotations

import itertools

import numpy as np
import pytest

from trainscope.core.run import Series
from trainscope.detectors.engine.events import Limits, Shape
from trainscope.detectors.engine.excursions import excursions, judged

from ..runs import falling


def series(value: np.ndarray) -> Series:
    return Series("train/loss", np.arange(len(value)), value)


def test_events_come_in_order_and_never_overlap():
    for seed in range(12):
        rng = np.random.default_rng(seed)
        x = falling(seed=seed)
        for _ in range(3):
            begin = int(rng.integers(20, 380))
            x[begin : begin + int(rng.integers(1, 60))] *= rng.uniform(1.1, 4.0)
        found = excursions(series(x), Limits())
        assert [e.start for e in found] == sorted(e.start for e in found)
        assert all(one.end < other.start for one, other in itertools.pairwise(found)), seed
        assert all(e.start <= e.peak <= e.end < 400 for e in found)


def test_a_divergence_swallows_the_spikes_on_its_way_up():
    x = falling()
    x[280:] *= np.linspace(1.0, 3.0, 120)
    x[[320, 350]] *= 4.0
    found = excursions(series(x), Limits())
    assert [e.shape for e in found] == [Shape.DIVERGENCE]


def test_a_spike_before_a_divergence_is_an_event_of_its_own():
    x = falling()
    x[100] *= 3.0
    x[280:] *= np.linspace(1.0, 3.0, 120)
    assert [e.shape for e in excursions(series(x), Limits())] == [Shape.SPIKE, Shape.DIVERGENCE]


@pytest.mark.parametrize("n", [0, 1, 9])
def test_a_short_series_has_no_events(n):
    assert excursions(series(np.linspace(3.0, 2.0, n)), Limits()) == ()


def test_exact_zeros_and_what_is_not_finite_are_not_judged():
    x = np.array([1.0, 0.0, np.nan, np.inf, 1e-300, -1.0])
    assert judged(series(x)).value.tolist() == [1.0, 1e-300, -1.0]
    clean = series(np.array([1.0, 2.0]))
    assert judged(clean) is clean
