from __future__ import annotations

import numpy as np
import pytest

from trainscope.core.finding import Severity
from trainscope.detectors.base import Skipped

from .runs import ROWS, at, cosine, falling, findings, judged, run_of


def zeroed(begin: int, end: int) -> np.ndarray:
    x = cosine()
    x[begin:end] = 0.0
    return x


def found_in(x: np.ndarray, **params: object) -> list:
    return findings("lr_zero", run_of({"learning_rate": x}), **params)


def test_a_rate_of_0_for_the_whole_run_is_an_error():
    (found,) = found_in(np.zeros(ROWS))
    assert found.severity is Severity.ERROR
    assert "for the whole run" in found.message
    assert (found.start_step, found.end_step) == (at(0), at(399))
    assert found.evidence == {"points": 400, "share": 1.0}


def test_a_stretch_in_the_middle_is_an_error_where_it_is():
    (found,) = found_in(zeroed(200, 250))
    assert (found.start_step, found.peak_step, found.end_step) == (at(200), at(200), at(249))


@pytest.mark.parametrize(
    ("begin", "end", "expected"),
    [(200, 209, 0), (200, 210, 1), (380, 400, 1), (381, 400, 0), (0, 79, 0), (0, 80, 1)],
)
def test_the_border_between_a_schedule_and_a_fault(begin, end, expected):
    """Ten points in the middle, a twentieth of the run at the end, a fifth at the beginning."""
    assert len(found_in(zeroed(begin, end))) == expected


def test_both_borders_are_parameters():
    assert found_in(zeroed(200, 210), points=11) == []
    assert found_in(zeroed(300, 400), tail=0.5) == []
    assert len(found_in(zeroed(388, 400), tail=0.0)) == 1


def test_a_tiny_rate_is_not_0():
    assert found_in(cosine() * 1e-20) == []


def test_a_run_without_a_learning_rate_is_skipped():
    assert judged("lr_zero", run_of({"train/loss": falling()})) == Skipped("needs learning_rate")


def test_known_false_positive_a_rate_rounded_to_too_few_digits():
    """A fine-tuning at 2e-5, written with four decimals."""
    (found,) = found_in(np.round(cosine(peak=2e-5), 4))
    assert "for the whole run" in found.message
