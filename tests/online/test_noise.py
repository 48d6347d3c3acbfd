"""Noise that has grown, apart from noise that follows its level or grows slowly."""

import numpy as np

from trainscope.online.noise import GrownNoise


def test_noise_that_grows_by_little_and_little_has_not_grown():
    e = np.random.default_rng(0).normal(size=3000)
    watch = GrownNoise()
    assert all(watch.add(float(v), 2.0) is None for v in 2 + 0.04 * np.linspace(1, 3, 3000) * e)


def test_noise_that_rises_with_its_level_has_not_grown():
    e = np.random.default_rng(1).normal(size=1500)
    level = np.where(np.arange(1500) < 900, 1.0, 10.0)
    watch = GrownNoise()
    assert all(watch.add(float(v), 10.0) is None for v in level * (1 + 0.03 * e))
