from __future__ import annotations

import numpy as np

from trainscope.core.loss_scale import overflowed_on_purpose
from trainscope.core.run import Run, Series


def run_of(**columns):
    names = {"loss": "train/loss", "scale": "amp/grad_scale", "refused": "amp/step_skipped"}
    made = {names[key]: Series(names[key], np.arange(len(v)), np.array(v, dtype=float)) for key, v in columns.items()}
    return Run("made", "made", "recorded", made)


def test_a_run_without_a_loss_scale_has_no_overflow_on_purpose():
    assert overflowed_on_purpose(run_of(loss=[1, 2], refused=[0, 1])).tolist() == []


def test_refused_steps_with_a_scale_above_one_and_a_finite_loss_are_on_purpose():
    run = run_of(loss=[1, 1, np.nan, 1, 1], scale=[8, 8, 8, 1, 8], refused=[0, 1, 1, 1, 0])
    assert overflowed_on_purpose(run).tolist() == [1]


def test_only_the_last_step_may_be_refused_where_no_refusal_was_recorded():
    assert overflowed_on_purpose(run_of(loss=[1, 1, 1], scale=[8, 8, 8])).tolist() == [2]
