from __future__ import annotations

import itertools

import numpy as np
import pytest

from trainscope.core.finding import Severity
from trainscope.core.settings import Settings
from trainscope.detectors import configure, judge
from trainscope.detectors.base import number

from .runs import at, falling, findings, only, run_of


def jumped(until: int | None, stays: float = 1.13) -> np.ndarray:
    x = falling()
    x[200:203] *= 3.0
    x[203:until] *= stays
    return x


def test_a_spike_that_stays_up_to_the_end_is_an_error_with_all_its_numbers():
    x = jumped(None)
    found = only("unrecovered_spike", run_of({"train/loss": x}))
    assert found.severity is Severity.ERROR
    assert (found.start_step, found.end_step) == (at(200), at(399))
    assert found.peak_step == at(200 + int(np.argmax(x[200:203])))
    assert found.evidence["value"] == x.max() or found.evidence["value"] == x[200:203].max()
    assert found.evidence["baseline"] < found.evidence["after"] < found.evidence["value"]


def test_one_that_comes_back_later_is_a_warning_that_ends_there():
    found = only("unrecovered_spike", run_of({"train/loss": jumped(300)}))
    assert found.severity is Severity.WARNING
    assert found.start_step == at(200)
    assert at(285) <= found.end_step <= at(305)


@pytest.mark.parametrize("seed", range(5))
def test_one_that_comes_back_at_once_is_left_to_spikes(seed):
    x = falling(seed=seed)
    x[200:203] *= 3.0
    run = run_of({"train/loss": x})
    assert findings("unrecovered_spike", run) == []
    assert only("spikes", run).start_step == at(200)


def test_the_four_loss_detectors_never_report_one_event_twice():
    four = configure(Settings(select=["spikes", "unrecovered_spike", "loss_shift", "divergence"]))
    for seed in range(10):
        rng = np.random.default_rng(seed)
        x = falling(seed=seed)
        begin, length = int(rng.integers(60, 300)), int(rng.integers(1, 40))
        x[begin : begin + length] *= rng.uniform(1.3, 6.0)
        x[begin + length :] *= rng.uniform(1.0, 1.6)
        found = sorted(judge(run_of({"train/loss": x}), four).findings, key=lambda f: f.start_step)
        assert found, seed
        for one, other in itertools.pairwise(found):
            assert one.end_step < other.start_step, (seed, [f.message for f in found])


def test_known_miss_a_spike_in_the_last_points():
    x = falling()
    x[398:] *= 3.0
    assert findings("unrecovered_spike", run_of({"train/loss": x})) == []


def test_known_false_positive_a_harder_mixture_that_begins_with_a_jump():
    """The data became 10 % harder for good, after three batches that were much harder."""
    found = only("unrecovered_spike", run_of({"train/loss": jumped(None, stays=1.12)}))
    assert found.severity is Severity.ERROR


def test_what_it_came_back_to_is_called_a_level_and_not_the_last_value():
    x = jumped(None)
    x[-1] *= 0.97
    found = only("unrecovered_spike", run_of({"train/loss": x}))
    level = found.evidence["after"]
    assert f"was still at a level of {number(level)} by step {at(399)}." in found.message
    assert level == pytest.approx(np.median(x[300:]), rel=0.05)
    assert number(x[-1]) not in found.message
