from __future__ import annotations

import numpy as np
import pytest

from trainscope.core.run import Run
from trainscope.detectors.engine.restarts import near_restart, restart_steps

from ..runs import ROWS, at, cosine, falling, level, run_of

RATE = 3e-4 * np.minimum(1.0, np.arange(ROWS) / 20.0)


def twice(loss: np.ndarray, rate: np.ndarray) -> Run:
    return run_of({"train/loss": loss, "learning_rate": rate})


def test_a_learning_rate_and_a_loss_that_begin_again_are_a_restart():
    run = twice(np.concatenate((falling(), falling(seed=1))), np.concatenate((RATE, RATE)))
    assert restart_steps(run) == (at(ROWS),)


def test_each_of_several_restarts_is_found():
    run = twice(np.concatenate([falling(seed=s) for s in range(4)]), np.tile(RATE, 4))
    assert restart_steps(run) == (at(ROWS), at(2 * ROWS), at(3 * ROWS))


@pytest.mark.parametrize(
    ("loss", "rate"),
    [
        (np.concatenate((falling(), level(seed=1))), np.concatenate((RATE, RATE))),  # the weights were kept
        (np.concatenate((falling(), falling(seed=1))), np.tile(RATE.max(), 2 * ROWS)),  # no new warm-up
        (falling(2 * ROWS), cosine(2 * ROWS)),
    ],
    ids=["warm restart", "constant rate", "healthy"],
)
def test_one_alone_is_no_restart(loss, rate):
    assert restart_steps(twice(loss, rate)) == ()


def test_a_run_that_lacks_either_cannot_be_told():
    assert restart_steps(run_of({"train/loss": falling()})) == ()
    assert restart_steps(run_of({"learning_rate": RATE})) == ()


def test_near_means_within_2_percent_of_the_run():
    run = twice(np.concatenate((falling(), falling(seed=1))), np.concatenate((RATE, RATE)))
    assert near_restart(run, at(ROWS))
    assert near_restart(run, at(ROWS + 15))
    assert not near_restart(run, at(ROWS + 20))
    assert not near_restart(run, at(100))
