from __future__ import annotations

import contextlib
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainscope.core.errors import ConfigError
from trainscope.core.finding import Severity
from trainscope.core.run import Run, Series
from trainscope.core.settings import Settings
from trainscope.detectors import configure
from trainscope.detectors.base import Skipped
from trainscope.detectors.expectation import Params, parse

from .runs import falling, findings, judged, only, run_of


def series(name: str, points: int) -> Series:
    return Series(name, np.arange(points), np.ones(points))


def run() -> Run:
    return run_of({"train/loss": [5.0, 4.0, 2.0, 3.0], "eval/loss": [np.nan, np.inf], "train/grad_norm": [1.0, np.nan]})


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("train/loss at step 20 < 4", 4.0),
        ("train/loss at step 29 < 4", 4.0),  # the last point at or before it
        ("train/loss at step 40 > 3", 3.0),
        ("train/loss last <= 2.9", 3.0),
        ("train/loss min > 2", 2.0),
        ("train/loss max < 5", 5.0),
        ("train/loss mean >= 3.6", 3.5),
        ("loss last > 4", 3.0),  # as a framework spells it
    ],
)
def test_an_expectation_that_is_not_met_is_an_error_with_the_value(line, value):
    found = only("expectation", run(), expect=(line,))
    assert found.severity is Severity.ERROR
    assert found.evidence["value"] == value
    assert found.message == f"Expected {line}, but it is {value:g}."


@pytest.mark.parametrize(
    "line",
    [
        "train/loss at step 20 <= 4",
        "train/loss last>=3",
        "train/loss min >= 2",
        "train/loss max <= 5e0",
        "loss mean < 3.6",
    ],
)
def test_an_expectation_that_is_met_says_nothing(line):
    assert findings("expectation", run(), expect=(line,)) == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("train/lost last < 3", "but the run has no train/lost; did you mean 'train/loss'?"),
        ("eval/loss last < 3", "but eval/loss has no finite value."),
        ("train/loss at step 5 < 3", "but train/loss has no finite value at or before step 5."),
        ("train/loss at step 41 < 9", "but the run ended at step 40."),
        ("train/loss at step 9999 > 0", "but the run ended at step 40."),
    ],
)
def test_what_cannot_be_checked_is_not_met(line, reason):
    found = only("expectation", run(), expect=(line,))
    assert found.message.endswith(reason)
    assert found.start_step is None
    assert math.isnan(found.evidence["value"])


def test_a_metric_that_is_logged_seldom_need_not_have_the_step_if_the_run_reached_it():
    sparse = Run("a", "a", "csv", {"train/loss": series("train/loss", 10), "eval/loss": series("eval/loss", 4)})
    assert findings("expectation", sparse, expect=("eval/loss at step 9 <= 1",)) == []
    assert len(findings("expectation", sparse, expect=("eval/loss at step 10 <= 1",))) == 1


def test_expectations_that_are_set_cannot_be_disabled():
    off = Settings(expect=["train/loss last < 3"], detectors={"expectation": {"enabled": False}})
    with pytest.raises(ConfigError, match="remove one of the two"):
        configure(off)
    assert configure(Settings(detectors={"expectation": {"enabled": False}}))


def test_each_line_is_judged_on_its_own():
    lines = ("train/loss last < 1", "train/loss last < 10", "train/loss min < 1")
    assert len(findings("expectation", run(), expect=lines)) == 2


def test_nothing_is_expected_unless_someone_says_so():
    assert judged("expectation", run_of({"train/loss": falling()})) == Skipped("no expectation is set")


@pytest.mark.parametrize(
    "line",
    [
        "", "train/loss", "train/loss < 3", "train/loss at 20 < 3", "train/loss at step x < 3", "train/loss last = 3",
        "train/loss last == 3", "train/loss last < three", "train/loss last < nan", "train/loss median < 3",
        "train/loss last < 3 or so", "train/loss at step -5 < 3",
        f"train/loss at step {'9' * 5001} < 3", "train/loss last < 1\ntrain/loss last < 2",
    ],
)  # fmt: skip
def test_a_line_outside_the_grammar_is_quoted_with_one_that_is_right(line):
    for build in (parse, lambda text: Params(expect=(text,)), lambda text: configure(Settings(expect=[text]))):
        with pytest.raises(ConfigError) as error:
            build(line)
        assert repr(line) in str(error.value)
        assert "train/loss at step 200 <= 6.5" in str(error.value)
        assert "\n" not in str(error.value)


NAMES = st.from_regex(r"[a-z_]{1,8}(/[a-z_]{1,8})?", fullmatch=True)
QUICK = settings(max_examples=50)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@QUICK
@given(NAMES, st.integers(0, 10**9), st.sampled_from(["<", "<=", ">", ">="]), NUMBERS, st.sampled_from(["", " ", "  "]))
def test_what_the_grammar_writes_is_read_back(name, step, op, value, space):
    got = parse(f"{name} at step {step}{space}{op}{space}{value!r}")
    assert (got.metric, got.step, got.op, got.value) == (name, step, op, value)


@QUICK
@given(NAMES, st.sampled_from(["last", "min", "max", "mean"]), st.sampled_from(["<", "<=", ">", ">="]), NUMBERS)
def test_so_is_the_other_form(name, which, op, value):
    got = parse(f"  {name} {which} {op} {value!r} ")
    assert (got.metric, got.step, got.which, got.op, got.value) == (name, None, which, op, value)


@QUICK
@given(st.text(max_size=40))
def test_any_other_text_is_refused_or_understood(text):
    with contextlib.suppress(ConfigError):
        assert parse(text).text == text.strip()
