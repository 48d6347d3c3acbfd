"""Fisher's exact test against the definition, in fractions."""

from fractions import Fraction
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainscope.diagnosis import fisher


def by_definition(having, group, others_having, others):
    """Sum of the hypergeometric probabilities, without a rounding."""
    total, with_it = group + others, having + others_having
    ways = Fraction(comb(total, with_it))
    return sum(
        Fraction(comb(group, k) * comb(others, with_it - k)) / ways
        for k in range(having, min(group, with_it) + 1)
        if with_it - k <= others
    )


def test_the_lady_tasting_tea_is_one_in_seventy():
    assert fisher.at_least(4, 4, 0, 4) == pytest.approx(1 / 70, rel=1e-15)
    assert fisher.at_least(3, 4, 1, 4) == pytest.approx(17 / 70, rel=1e-15)


@given(st.data())
def test_it_is_the_definition(data):
    group, others = data.draw(st.integers(0, 30)), data.draw(st.integers(0, 30))
    having, others_having = data.draw(st.integers(0, group)), data.draw(st.integers(0, others))
    expected = by_definition(having, group, others_having, others)
    assert fisher.at_least(having, group, others_having, others) == pytest.approx(float(expected), rel=1e-12)


def test_nothing_to_compare_is_certain():
    assert fisher.at_least(0, 5, 0, 7) == 1.0
    assert fisher.at_least(3, 3, 0, 0) == 1.0


def test_the_least_value_is_that_of_a_perfect_trait():
    assert fisher.least(2, 2) == pytest.approx(1 / 6)
    assert fisher.least(3, 40) == pytest.approx(1 / comb(43, 3))


def test_impossible_counts_are_refused():
    with pytest.raises(ValueError, match="cannot be"):
        fisher.at_least(3, 2, 0, 2)
