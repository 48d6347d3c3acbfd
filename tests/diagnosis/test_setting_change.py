from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import pytest
from smoke_runs import STEPS, smoke_run

from .runs import only, said

MOVED = 1.0 + 1e-3 * np.sin(np.arange(STEPS))
"""What a change makes of the losses: little."""


def run(*used: float, moved: bool = False, facts: Mapping[str, object] = MappingProxyType({}), **optimizer: object):
    base = smoke_run().series["train/loss"].value
    series = {"train/loss": base * MOVED if moved else base}
    options = {f"optimizer0__{key}": value for key, value in {"class": "AdamW", **optimizer}.items()}
    return smoke_run(series, **{"dropout_used": list(used), "optimizers": 1, **facts, **options})


def test_dropout_that_is_gone_is_found_though_the_loss_hardly_moves():
    one = only(run(moved=True), run(0.1), by="setting_change")
    assert one.message == "No dropout is on in training; in the baseline up to 0.1."


def test_dropout_that_the_model_has_and_does_not_use_is_said_to_be_in_eval_mode():
    silent = {"model__dropout": [0.1], "eval_mode_modules": ["drop"]}
    one = only(run(moved=True, facts=silent), run(0.1), by="setting_change")
    assert one.message.endswith("up to 0.1: the model has it still, and runs it in eval mode.")
    assert one.fixes == ("Call model.train() before the training step.",)
    gone = {"model__dropout": [], "eval_mode_modules": ["norm"]}
    assert only(run(moved=True, facts=gone), run(0.1), by="setting_change").message.endswith("up to 0.1.")


@pytest.mark.parametrize(
    "changed",
    [
        run(0.2, moved=True),
        run(),  # the same losses: it was not there to begin with
        run(moved=True, facts={"first_step_random": True}),
        run(moved=True, facts={"dropout_used": None}),
        run(moved=True, facts={"compiled": True, "model__dropout": [0.1]}),
    ],
    ids=["another rate", "the same training", "written by hand", "not known", "compiled"],
)
def test_dropout_of_another_rate_or_written_otherwise_is_not_lost(changed):
    assert "setting_change" not in said(changed, run(0.1))


def two(*betas: float, kind: str = "Adam", moved: bool = True):
    options = {f"optimizer{i}__{k}": v for i, beta in enumerate(betas) for k, v in (("class", kind), ("beta2", beta))}
    base = smoke_run().series["train/loss"].value
    return smoke_run({"train/loss": base * MOVED if moved else base}, optimizers=len(betas), **options)


def test_the_order_of_optimizers_and_of_groups_is_nobodys_setting():
    assert "setting_change" not in said(two(0.9, 0.999), two(0.999, 0.9, moved=False))
    assert "setting_change" in said(two(0.9, 0.9), two(0.999, 0.9, moved=False))
    groups = {"weight_decay": 0.0, "weight_decay.groups": [0.0, 0.01, 0.1]}
    turned = {"weight_decay": 0.1, "weight_decay.groups": [0.1, 0.0, 0.01]}
    assert "setting_change" not in said(run(moved=True, **turned), run(**groups))


@pytest.mark.parametrize(
    ("before", "now", "found"),
    [
        ({"beta2": 0.95}, {"beta2": 0.5}, True),
        ({"beta2": 0.999}, {"beta2": 0.95}, True),
        ({"beta1": 0.9}, {"beta1": 0.95}, False),
        ({"beta2": 0.95}, {"beta2": 0.99}, False),
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
