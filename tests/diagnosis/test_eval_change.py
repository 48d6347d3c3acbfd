from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from smoke_runs import evaluated, smoke_run

from trainscope.core.run import Series

from .runs import log, losses, only, said


def evaluations(count: int = 40, graphs: int = 0, train: int = 0):
    return smoke_run(evaluations=count, evaluations_with_gradient=graphs, evaluations_in_train_mode=train)


@pytest.mark.parametrize(("now", "title"), [({"graphs": 40}, "builds graphs"), ({"train": 40}, "in train mode")])
def test_what_no_evaluation_did_before_is_found(now, title):
    assert title in only(evaluations(**now), evaluations(), by="eval_change").title
    assert said(evaluations(**now), evaluations(**now)) == {}
    assert said(evaluations(), evaluations(**now)) == {}


def test_a_single_pass_beside_the_evaluations_is_no_finding():
    assert said(evaluations(41, graphs=1), evaluations()) == {}
    assert said(evaluations(44, graphs=4), evaluations()) == {}


def test_a_baseline_without_evaluations_says_nothing_of_how_they_ran():
    assert said(evaluations(graphs=40), evaluations(0)) == {}


def outputs(mean: float, spread: float, **facts: object):
    def series(name: str, value: float) -> Series:
        return Series(name, evaluated(0, 0).step, np.array([0.0, value]))

    names = {"smoke/eval_output_mean": mean, "smoke/eval_output_std": spread}
    return smoke_run({name: series(name, value) for name, value in names.items()}, evaluations=8, **facts)


def test_an_evaluation_of_another_model_shows_in_its_outputs():
    one = only(outputs(0.1, 2.0), outputs(0.1, 3.0), by="eval_change")
    assert one.title == "Evaluation sees another model"
    assert said(outputs(0.1, 3.01), outputs(0.1, 3.0)) == {}


def test_another_pass_beside_the_evaluation_is_no_finding():
    def sized(mean: float, spread: float, numbers: float):
        made = outputs(mean, spread)
        size = Series("smoke/eval_outputs", evaluated(0, 0).step, np.array([numbers, numbers]))
        return replace(made, series={**made.series, "smoke/eval_outputs": size})

    assert said(sized(0.1, 2.0, 2000), sized(0.1, 3.0, 1000)) == {}
    assert "eval_change" in said(sized(0.1, 2.0, 1000), sized(0.1, 3.0, 1000))


def test_outputs_of_runs_that_do_not_pair_are_not_compared():
    assert "eval_change" not in said(outputs(0.1, 2.0, seed=1), outputs(0.1, 3.0, seed=0))


def test_the_small_end_of_a_long_way_is_noisy_under_another_seed():
    def ended(value: float, seed: int):
        made = smoke_run(seed=seed)
        return replace(
            made, series={**made.series, "eval/loss": Series("eval/loss", np.array([149]), np.array([value]))}
        )

    # The training loss starts at 5; half as much again of 0.1 is a hundredth of that way.
    assert "eval_change" not in said(ended(0.15, 1), ended(0.1, 0))
    assert "eval_change" in said(ended(0.5, 1), ended(0.1, 0))
    assert "eval_change" in said(ended(0.15, 0), ended(0.1, 0))


def test_an_evaluation_that_got_worse_while_training_did_not_is_found():
    base, run = (smoke_run({"smoke/eval_cross_entropy": evaluated(2.0, end)}) for end in (1.0, 1.6))
    assert only(run, base, by="eval_change").metric == "smoke/eval_cross_entropy"


def test_evaluating_more_often_is_compared_at_the_common_steps():
    often = evaluated(2.0, 1.0)
    run = smoke_run({"smoke/eval_cross_entropy": often})
    assert said(run, smoke_run({"smoke/eval_cross_entropy": evaluated(1.0)})) == {}


def test_an_evaluation_that_is_missing_now_is_a_warning():
    base = log(losses(), eval__loss=losses())
    assert only(log(losses()), base, by="eval_change").title == "Evaluation missing"


def test_an_evaluation_whose_loss_is_written_out_by_hand_is_no_finding():
    assert said(smoke_run(), smoke_run({"smoke/eval_cross_entropy": evaluated(2.0, 1.0)})) == {}


def test_an_evaluation_without_class_labels_is_compared_too():
    def seen(value: float):
        return smoke_run({"smoke/eval_objective": evaluated(0.5, 0.1, value)})

    assert only(seen(0.015), seen(0.012), by="eval_change").title == "Evaluation worse than the baseline"
    assert said(seen(0.0122), seen(0.012)) == {}
    assert said(smoke_run(), seen(0.012)) == {}
