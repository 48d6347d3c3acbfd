from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from trainscope.diagnosis.newey_west import mean_of


def slow(values: list[float], lag: int) -> tuple[float, float]:
    """Newey-West as the paper writes it: a sum over all pairs with Bartlett's weights."""
    n = len(values)
    mean = sum(values) / n
    total = 0.0
    for i in range(n):
        for j in range(n):
            weight = 1.0 - abs(i - j) / (lag + 1.0)
            if weight > 0:
                total += weight * (values[i] - mean) * (values[j] - mean)
    return mean, sqrt(max(total, 0.0)) / n


@pytest.mark.parametrize("n", [1, 2, 5, 11, 40])
@pytest.mark.parametrize("lag", [0, 1, 3, 10])
def test_it_agrees_with_the_sum_over_all_pairs(n, lag):
    values = np.random.default_rng(n).standard_normal(n).cumsum()
    got = mean_of(values, lag)
    expected = slow(values.tolist(), min(lag, n - 1) if lag >= n else lag)
    if lag < n:
        assert (got.value, got.error) == pytest.approx(expected)


def test_without_correlation_it_is_the_ordinary_standard_error():
    values = np.random.default_rng(0).standard_normal(4000)
    assert mean_of(values).error == pytest.approx(values.std() / sqrt(4000), rel=0.15)


def test_correlation_widens_the_error_as_theory_says():
    rng, phi = np.random.default_rng(1), 0.6
    noise = rng.standard_normal(60000)
    values = np.empty_like(noise)
    values[0] = noise[0]
    for i in range(1, len(noise)):
        values[i] = phi * values[i - 1] + noise[i]
    exact = sqrt(1.0 / (1.0 - phi) ** 2 / len(values))
    assert mean_of(values, 60).error == pytest.approx(exact, rel=0.1)
    assert mean_of(values, 0).error < 0.7 * exact


def test_the_interval_holds_the_true_mean_about_as_often_as_it_says():
    rng = np.random.default_rng(2)
    inside = 0
    for _ in range(400):
        mean = mean_of(0.3 + rng.standard_normal(80), 3)
        inside += mean.lower() <= 0.3 <= mean.upper()
    assert 0.95 <= inside / 400 <= 1.0


def test_a_constant_has_no_error():
    assert mean_of(np.full(30, 2.5)).error == pytest.approx(0.0)
