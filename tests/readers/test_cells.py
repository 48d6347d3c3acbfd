from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainscope.readers import cells


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.5", 1.5),
        (" -2e-3 ", -0.002),
        ("001", 1.0),
        ("inf", math.inf),
        ("-Infinity", -math.inf),
        ("+INF", math.inf),
        ("1e999", math.inf),
        ("7,377", 7377.0),
        ("20,971,520.5", 20971520.5),
        ("91.62%", 91.62),
        ("tensor(2.3, device='cuda:0')", 2.3),
        ("tensor(2.3000, grad_fn=<NllLossBackward0>)", 2.3),
        ("tensor([0.5])", 0.5),
        ("np.float64(1.2)", 1.2),
        ("array(3., dtype=float32)", 3.0),
        ("tensor(-inf)", -math.inf),
    ],
)
def test_a_cell_that_stands_for_a_number_is_that_number(text: str, value: float) -> None:
    assert cells.number(text) == value


@pytest.mark.parametrize("text", ["nan", "NaN", "-nan", "tensor(nan)", "np.float32(nan)", "NAN"])
def test_every_spelling_of_nan_is_nan(text: str) -> None:
    value = cells.number(text)
    assert value is not None
    assert math.isnan(value)


@pytest.mark.parametrize(
    "text", ["", "n/a", "OOM", "--", "1.9?", "1_000", "3/2353", "1,23", "0x10", "tensor", "1 2", "٣"]
)
def test_text_is_no_number(text: str) -> None:
    assert cells.number(text) is None


@pytest.mark.parametrize(("text", "value"), [("1,5", 1.5), ("1.234,5", 1234.5), ("-0,25e-3", -0.25e-3), ("2", 2.0)])
def test_a_decimal_comma_is_read_where_the_file_uses_one(text: str, value: float) -> None:
    assert cells.number(text, decimal=",") == value


@given(st.floats(allow_nan=False))
def test_every_float_survives_its_repr(value: float) -> None:
    assert cells.number(repr(value)) == value


@pytest.mark.slow
@given(st.text(max_size=60))
def test_no_text_makes_the_cell_parsers_raise(text: str) -> None:
    for parse in (cells.number, cells.duration, cells.unix_time, cells.step_of):
        parse(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0:01:03", 63.0),
        ("01:03", 63.0),
        ("9 days, 21:39:23", 9 * 86400 + 21 * 3600 + 39 * 60 + 23),
        ("1 day, 0:08:23.5", 86400 + 503.5),
        ("49m 57s", 2997.0),
        ("2h 3m", 7380.0),
        ("1d 1h 1m 1s", 90061.0),
        ("12.5s", 12.5),
    ],
)
def test_durations_are_seconds(text: str, seconds: float) -> None:
    assert cells.duration(text) == seconds


@pytest.mark.parametrize("text", ["", "abc", "5", "2024-01-01", "::", "1:2:3:4"])
def test_other_text_is_no_duration(text: str) -> None:
    assert cells.duration(text) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2024-01-01T00:00:00Z", 1704067200.0),
        ("2024-01-01 01:00:00+01:00", 1704067200.0),
        ("2024-01-01 00:00:00,250", 1704067200.25),
        ("2024-01-01", 1704067200.0),
    ],
)
def test_dates_are_unix_seconds(text: str, seconds: float) -> None:
    assert cells.unix_time(text) == seconds


def test_a_step_of_a_total_is_split() -> None:
    assert cells.step_of("3/2353") == (3, 2353)
    assert cells.step_of("a/b") is None
