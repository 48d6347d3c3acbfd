from __future__ import annotations

from pathlib import Path

import pytest

from trainscope.core.errors import (
    ConfigError,
    NoDataError,
    NoReaderError,
    ReadError,
    TrainscopeError,
    did_you_mean,
)


@pytest.mark.parametrize("error", [ReadError, NoReaderError, NoDataError, ConfigError])
def test_one_base_class_catches_everything(error):
    assert issubclass(error, TrainscopeError)


def test_a_path_that_no_reader_knows_is_a_log_that_cannot_be_read():
    assert issubclass(NoReaderError, ReadError)


def test_a_read_error_says_where_and_what():
    assert str(ReadError(Path("runs") / "a.csv", "no step column")) == f"{Path('runs') / 'a.csv'}: no step column"
    error = ReadError("a.csv", "no number in 'x'", line=17)
    assert str(error) == "a.csv:17: no number in 'x'"
    assert (error.path, error.line, error.reason) == ("a.csv", 17, "no number in 'x'")


@pytest.mark.parametrize(
    ("word", "known", "hint"),
    [
        ("spike", ["spikes", "plateau"], "; did you mean 'spikes'?"),
        ("zzz", ["b", "a"], "; allowed: a, b"),
        ("zzz", [], ""),
        ("", ["a"], "; allowed: a"),
        ("SPIKES", ["spikes"], "; allowed: spikes"),
    ],
)
def test_the_nearest_word_is_suggested_or_all_are_listed(word, known, hint):
    assert did_you_mean(word, known) == hint


def test_the_suggestion_does_not_depend_on_the_order():
    words = {"loss_floor", "loss_shift", "zero_loss"}
    assert len({did_you_mean("loss_f", order) for order in (sorted(words), sorted(words, reverse=True), words)}) == 1
