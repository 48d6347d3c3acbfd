import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainscope.core.run import Series
from trainscope.site.curves import BUCKETS, curve_of, evidence_of


def series(values, start=0, name="train/loss"):
    return Series(name, np.arange(start, start + len(values)), np.array(values, dtype=float))


def test_a_short_series_is_kept_point_by_point():
    curve = curve_of(series([3.0, np.nan, 1.0, np.inf]))
    assert curve.step == [0, 1, 2, 3]
    assert curve.middle == [3.0, None, 1.0, None]
    assert curve.low == curve.high == []
    assert (curve.broken, curve.broken_count) == ([1, 3], 2)


@pytest.mark.slow
@given(st.integers(2 * BUCKETS + 1, 20_000), st.integers(0, 2**32 - 1))
def test_an_envelope_keeps_the_greatest_the_least_and_every_share_with_a_nan(size, seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(0, 1, size)
    peak, hole, bad = (int(i) for i in rng.choice(size, 3, replace=False))
    values[peak], values[hole], values[bad] = 1e6 + 1.25, -3e5, np.nan
    curve = curve_of(series(values))
    assert max(v for v in curve.high if v is not None) == pytest.approx(values[peak], rel=1e-5)
    assert min(v for v in curve.low if v is not None) == values[hole]
    assert curve.most == (peak, 1e6 + 1.25)
    assert curve.least == (hole, -300_000)
    assert curve.broken_count == 1
    assert abs(curve.broken[0] - bad) <= size / BUCKETS
    assert len(curve.step) <= BUCKETS + 1
    assert curve.step == sorted(curve.step)


def test_the_line_breaks_where_a_share_holds_a_nan():
    values = np.ones(5000)
    values[2500] = np.nan
    curve = curve_of(series(values))
    assert curve.middle.count(None) == 1


def test_a_series_of_nothing_but_nan_has_no_landmarks():
    curve = curve_of(series([np.nan] * 2000))
    assert (curve.first, curve.last, curve.least, curve.most) == (None, None, None, None)
    assert set(curve.middle) == {None}


def test_evidence_has_every_point_around_a_finding_in_a_million_steps():
    values = np.ones(1_000_000)
    values[700_000] = 50.0
    curve = evidence_of(series(values), 700_000, 700_001)
    assert 50.0 in curve.middle
    assert curve.low == []
    assert curve.step[curve.middle.index(50.0)] == 700_000


def test_steps_near_the_limit_of_64_bits_do_not_overflow():
    top = 2**62
    curve = curve_of(series(np.arange(3000.0), start=top))
    assert curve.step[0] >= top
    assert curve.last == (top + 2999, 2999)
