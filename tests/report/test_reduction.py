from __future__ import annotations

import numpy as np
import pytest

from trainscope.core.run import Series
from trainscope.report.reduction import reduce_series


def slowly(series: Series, first: int, last: int, buckets: int):
    """The same by a loop over points."""
    groups: dict[int, list[float]] = {}
    broken = set()
    for step, value in zip(series.step.tolist(), series.value.tolist(), strict=True):
        if first <= step <= last:
            bucket = min(int((step - first) / max(last - first, 1) * buckets), buckets - 1)
            if np.isfinite(value):
                groups.setdefault(bucket, []).append(value)
            else:
                broken.add(bucket)
    return groups, sorted(broken)


@pytest.mark.parametrize("seed", range(10))
def test_the_envelope_is_that_of_a_loop_over_points(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 400))
    step = np.cumsum(rng.integers(1, 9, n))
    value = rng.normal(size=n)
    value[rng.random(n) < 0.1] = rng.choice([np.nan, np.inf, -np.inf])
    series = Series("x", step, value)
    first, last = int(step[0]), int(step[-1])
    if seed % 2:
        first, last = int(step[n // 4]), int(step[3 * n // 4])
    envelope = reduce_series(series, first, last, 37)
    groups, broken = slowly(series, first, last, 37)
    assert envelope.bucket.tolist() == sorted(groups)
    assert envelope.low.tolist() == [min(groups[b]) for b in sorted(groups)]
    assert envelope.high.tolist() == [max(groups[b]) for b in sorted(groups)]
    assert envelope.middle.tolist() == [sorted(groups[b])[(len(groups[b]) - 1) // 2] for b in sorted(groups)]
    assert envelope.broken.tolist() == broken
    lookup = dict(zip(step.tolist(), value.tolist(), strict=True))
    assert [lookup[s] for s in envelope.high_step.tolist()] == envelope.high.tolist()
    assert [lookup[s] for s in envelope.low_step.tolist()] == envelope.low.tolist()


def test_needles_of_a_single_step_survive_a_million_points():
    rng = np.random.default_rng(0)
    value = rng.normal(2.0, 0.05, 1_000_000)
    needles = rng.choice(1_000_000, 12, replace=False)
    value[needles[:6]], value[needles[6:]] = 9.0, -5.0
    envelope = reduce_series(Series("x", np.arange(1_000_000), value), 0, 999_999, 900)
    assert set(needles[:6]) <= set(envelope.high_step.tolist())
    assert set(needles[6:]) <= set(envelope.low_step.tolist())
    assert len(envelope.bucket) == 900


def test_only_non_finite_values_leave_only_broken_columns():
    envelope = reduce_series(Series("x", np.arange(4), np.full(4, np.nan)), 0, 3, 4)
    assert envelope.bucket.tolist() == []
    assert envelope.broken.tolist() == [0, 1, 2, 3]


def test_steps_near_the_end_of_int64_do_not_overflow():
    step = np.array([-(2**62), 0, 2**62])
    envelope = reduce_series(Series("x", step, np.array([1.0, 2.0, 3.0])), int(step[0]), int(step[-1]), 10)
    assert envelope.bucket.tolist() == [0, 5, 9]
