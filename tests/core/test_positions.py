"""Lists of numbers read back as they were written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainscope.core.positions import numbers, ranges


@given(st.sets(st.integers(0, 200), min_size=1))
def test_what_is_written_is_read(found):
    assert numbers(ranges(sorted(found))) == tuple(sorted(found))


def test_neighbours_are_one_range():
    assert ranges([3, 4, 5, 9, 11, 12]) == "3-5,9,11-12"
    assert ranges([]) == ""


def test_order_and_repeats_do_not_matter():
    assert numbers(" 9, 3-5,4 ") == (3, 4, 5, 9)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "'' is no batch number"),
        ("4,,5", "'' is no batch number"),
        ("4521;4522", "'4521;4522' is no batch number"),
        ("-3", "'-3' is no batch number"),
        ("1.5", "'1.5' is no batch number"),
        ("٣", "'٣' is no batch number"),
        ("9-3", "'9-3' runs backwards"),
        ("0-999999999", "longer than 1,000,000"),
        ("9" * 30, "is no batch number"),
    ],
)
def test_anything_else_is_named(text, said):
    with pytest.raises(ValueError, match=said.replace("(", r"\(")):
        numbers(text)
