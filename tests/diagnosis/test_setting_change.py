from __future__ import annotations

import numpy as np
import pytest
from smoke_runs import STEPS, smoke_run

from .runs import only, said

MOVED = 1.0 + 1e-3 * np.sin(np.arange(STEPS))
"""What a change makes of the losses: little."""


def run(dropout: float = 0.0, modules: float = 1.0, moved: bool = False, **optimizer: object):
    base = smoke_run().series["train/loss"].value
    series = {
        "train/loss": base * MOVED if moved else base,
        "smoke/train_mode_modules": np.full(STEPS, modules),
    }
    facts = {f"optimizer0__{key}": value for key, value in {"class": "AdamW", **optimizer}.items()}
    return smoke_run(series, model__dropout=[dropout], optimizers=1, **facts)


def test_dropout_that_is_gone_is_found_though_the_loss_hardly_moves():
    one = only(run(0.0, modules=0.0, moved=True), run(0.1), by="setting_change")
    assert one.message == "No dropout is on in the model; in the baseline up to 0.1."


@pytest.mark.parametrize(
    "changed",
    [
        run(0.2, moved=True),
        run(0.0, modules=0.0),  # the same losses: it was not there to begin with
        run(0.0, modules=1.0, moved=True),  # as a function, not a module
    ],
    ids=["another rate", "the same training", "a function"],
)
def test_another_rate_the_same_training_and_a_function_are_not_lost_dropout(changed):
    assert "setting_change" not in said(changed, run(0.1))


@pytest.mark.parametrize(
    ("before", "now", "found"),
    [
        ({"beta2": 0.95}, {"beta2": 0.5}, True),
        ({"beta2": 0.999}, {"beta2": 0.95}, True),
        ({"beta1": 0.9}, {"beta1": 0.95}, False),
        ({"momentum": 0.9}, {"momentum": 0.0}, True),
        ({"eps": 1e-8}, {"eps": 1e-3}, True),
        ({"eps": 1e-8}, {"eps": 1e-7}, False),
        ({"weight_decay": 0.01}, {"weight_decay": 0.1}, True),
        ({"weight_decay": 0.1}, {"weight_decay": 0.0}, False),
        ({"foreach": None}, {"foreach": True}, False),
    ],
)
def test_constants_of_another_order_are_found(before, now, found):
    assert ("setting_change" in said(run(moved=True, **now), run(**before))) is found
    assert "setting_change" not in said(run(**now), run(**before))


def test_another_optimizer_is_not_judged_by_its_constants():
    assert "setting_change" not in said(run(moved=True, **{"class": "Lion", "beta2": 0.5}), run(beta2=0.99))
