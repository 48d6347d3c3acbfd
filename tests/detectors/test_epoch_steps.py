from __future__ import annotations

import numpy as np
import pytest

from trainscope.core.finding import Severity
from trainscope.core.settings import Settings
from trainscope.detectors import configure, judge
from trainscope.detectors.base import Skipped

from .runs import ROWS, at, falling, findings, in_epochs, judged, only, stairs

ID = "epoch_steps"


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("count", [3, 4, 6])
def test_stairs_are_told_as_benign(count, whole):
    found = only(ID, in_epochs(stairs(count), float(count), whole))
    assert found.severity is Severity.INFO
    assert found.evidence["stairs"] in (count - 1, count - 2)
    assert found.evidence["drop"] == pytest.approx(0.2, abs=0.02)
    assert "Likely benign, while a held-out loss does not rise" in found.message
    assert found.start_step == pytest.approx(at(ROWS // count), abs=20)


def test_a_run_that_evaluates_is_told_which_loss_to_watch():
    held_out = np.linspace(2.0, 1.5, 8)
    found = only(ID, in_epochs(stairs(4), 4.0, **{"eval/loss": held_out}))
    assert "while eval/loss does not rise" in found.message


def test_a_loss_that_falls_all_the_time_has_no_stairs():
    for seed in range(5):
        assert findings(ID, in_epochs(falling(seed=seed), 4.0)) == []


def test_a_loss_from_scratch_may_fall_much_in_its_first_epoch():
    k = np.arange(ROWS)
    found = only(ID, in_epochs(stairs(4) * (1.0 + 4.0 * np.exp(-k / 10.0)), 4.0))
    assert found.evidence["stairs"] == 3


def test_a_learning_rate_that_is_lowered_each_epoch_explains_them():
    rate = 1e-3 * 0.3 ** np.floor(4.0 * np.arange(ROWS) / ROWS)
    assert findings(ID, in_epochs(stairs(4), 4.0, learning_rate=rate)) == []


def test_small_stairs_are_left_out_and_how_small_is_a_parameter():
    run = in_epochs(stairs(4, drop=0.025, sd=0.002), 4.0)
    assert findings(ID, run) == []
    assert len(findings(ID, run, drop=0.01)) == 1


def test_a_flat_stretch_between_stairs_is_no_fault_of_its_own():
    k = np.arange(ROWS)
    run = in_epochs(stairs(3, drop=0.3) * (1.0 + 2.0 * np.exp(-k / 4.0)), 3.0)
    found = judge(run, configure(Settings())).findings
    assert len(findings("plateau", run)) == 1
    assert [f.detector for f in found] == [ID]


def test_too_few_epochs_or_points_are_not_judged():
    assert judged(ID, in_epochs(stairs(4), 1.9)) == Skipped("needs 2 whole epochs")
    assert judged(ID, in_epochs(falling(60), 5.0)) == Skipped("needs 20 points of train/loss an epoch")
