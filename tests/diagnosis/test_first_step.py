from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from smoke_runs import smoke_run

from .runs import layers, parameters, said


def run(gradient: dict | None = None, loss: float = 0.0, series: dict | None = None, **facts: object):
    made = smoke_run(series, **{"parameters": parameters(), **facts})
    found = dict(made.series)
    values = found["train/loss"].value.copy()
    values[0] += loss
    found["train/loss"] = replace(found["train/loss"], value=values)
    return replace(made, series=found, layers=layers(gradient=gradient or {}))


def change(one) -> list:
    return said(one, run()).get("first_step", [])


def test_a_gradient_that_changed_while_the_loss_did_not_is_named():
    (one,) = change(run({"head.weight": 1.35}))
    assert one.layer == "head.weight"
    assert one.evidence["ratio"] == pytest.approx(0.3)


def test_rounding_of_a_gradient_is_no_finding():
    assert change(run({"head.weight": 4.5 * (1 + 1e-4)})) == []


def test_a_tiny_gradient_is_judged_against_the_whole_one():
    assert change(run({"fc1.bias": 2.5})) == []
    tiny = run({"fc1.bias": 1e-6}), run({"fc1.bias": 2e-6})
    assert "first_step" not in said(*tiny)


def test_where_the_forward_rounds_differently_gradients_may_too():
    assert change(run({"head.weight": 4.5 * 1.05}, loss=0.005)) == []


def test_half_precision_is_judged_more_coarsely():
    coarse = {"env__dtype": "torch.bfloat16"}
    assert "first_step" not in said(run({"head.weight": 4.5 * 1.1}, **coarse), run(**coarse))


def test_another_loss_from_the_same_weights_and_batch_is_another_objective():
    (one,) = change(run(loss=0.3))
    assert one.title == "Another objective or model"


def test_dropout_may_change_the_first_loss():
    assert change(run(loss=0.3, model__dropout=[0.1])) == []


def test_other_first_weights_or_batches_are_not_judged():
    assert change(run({"head.weight": 1.0}, parameters=parameters(seed=500))) == []
    other = smoke_run({"smoke/batch_hash": np.arange(150), "smoke/target_hash": np.arange(150)})
    assert change(replace(other, layers=layers(gradient={"head.weight": 1.0}))) == []


def masked(loss: float, random: float = 7.0):
    """A run with dropout whose generator is here at the end of each step."""
    return run(loss=loss, model__dropout=[0.1], series={"smoke/rng_hash": np.full(150, random)})


def test_dropout_does_not_explain_a_loss_of_another_size_under_the_same_random_numbers():
    (one,) = said(masked(1.5), masked(0.0))["first_step"]
    assert one.title == "Another objective or model"
    assert "first_step" not in said(masked(0.3), masked(0.0))
    assert "first_step" not in said(masked(1.5), masked(0.0, random=8.0))


FINE = {"env__dtype": "float32", "env__device": "cpu", "autocast": []}


@pytest.mark.parametrize(("facts", "found"), [(FINE, True), (FINE | {"autocast": ["bfloat16"]}, False), ({}, False)])
def test_single_precision_on_a_cpu_is_judged_finely_where_it_is_known(facts, found):
    """A generator that gets no gradient from its critic differs by 0.3 %; another order of operations by 1e-7."""
    assert ("first_step" in said(run({"head.weight": 4.5 * 1.003}, **facts), run(**facts))) is found
    assert ("first_step" in said(run(loss=0.01, **facts), run(**facts))) is found
    assert "first_step" not in said(run({"head.weight": 4.5 * (1 + 1e-5)}, loss=1e-5, **facts), run(**facts))


DEEP = tuple(f"blocks.{place}.weight" for place in range(8))


def noisy(factor: float, loss: float, samples: int = 32, names: tuple[str, ...] = DEEP, rate: float = 0.05):
    """A run under dropout whose first gradients are all so much larger."""
    gradient = {name: factor * (0.5 + place) for place, name in enumerate(names)}
    series = {"smoke/rng_hash": np.full(150, 7.0), "smoke/samples": np.full(150, float(samples))}
    listed = parameters(names, ((32, 16),) * len(names))
    made = run(loss=loss, series=series, model__dropout=[rate], parameters=listed)
    return replace(made, layers=layers(names, gradient=gradient))


def test_gradients_of_most_matrices_move_further_than_other_dropout_masks_move_them():
    (one,) = said(noisy(1.25, 0.1), noisy(1.0, 0.0))["first_step"]
    assert one.title == "Another objective or model"
    assert "first_step" not in said(noisy(1.1, 0.1), noisy(1.0, 0.0))


def test_masks_that_leave_the_loss_as_it_was_may_still_move_gradients():
    assert "first_step" not in said(noisy(1.1, 0.001), noisy(1.0, 0.0))
    assert "first_step" in said(noisy(1.1, 0.0), noisy(1.0, 0.0))


@pytest.mark.parametrize("how", [{"samples": 4}, {"names": DEEP[:4]}, {"rate": 0.3}], ids=str)
def test_few_samples_few_matrices_and_more_dropout_explain_more(how):
    assert "first_step" not in said(noisy(1.25, 0.1, **how), noisy(1.0, 0.0, **how))


def test_what_other_noise_than_dropout_does_to_the_first_loss_is_not_known():
    drawn = {"series": {"smoke/rng_hash": np.full(150, 7.0)}, "first_step_random": True}
    assert "first_step" not in said(run(loss=4.0, **drawn), run(**drawn))
    assert "first_step" in said(run({"head.weight": 1.0}, **drawn), run(**drawn))


@pytest.mark.parametrize("key", ["model__dropout", "dropout_used"])
def test_dropout_counts_as_a_module_and_as_a_function(key):
    assert "first_step" not in said(run(loss=0.3, **{key: [0.1]}), run(**{key: [0.1]}))
    assert "first_step" in said(run(loss=0.3), run())


def test_a_first_batch_that_loader_workers_may_augment_otherwise_is_not_judged():
    def drawn(inputs: float, random: float, gradient: float):
        series = {"smoke/input_hash": np.full(150, inputs), "smoke/rng_hash": np.full(150, random)}
        return run({"head.weight": gradient}, series=series)

    base = drawn(5.0, 7.0, 4.5)
    assert "first_step" not in said(drawn(6.0, 8.0, 2.0), base)
    assert "first_step" in said(drawn(5.0, 8.0, 2.0), base)
    assert "first_step" in said(drawn(6.0, 7.0, 2.0), base)


def test_known_masks_leave_a_loss_under_dropout_no_excuse():
    same = {"model__dropout": [0.1], "first_step_random": True, "first_step_masks": 5}
    fine = {"env__dtype": "float32", "env__device": "cpu", "autocast": []}
    assert "first_step" in said(run(loss=0.05, **same), run(**same))
    assert "first_step" in said(run({"head.weight": 4.5 * 1.003}, loss=1e-6, **same, **fine), run(**same, **fine))
    other = {**same, "first_step_masks": 6}
    assert "first_step" not in said(run(loss=0.05, **other), run(**same))


def test_the_same_masks_on_inputs_that_are_laid_out_otherwise_are_others():
    def laid_out(inputs: float, loss: float):
        same = {"model__dropout": [0.1], "first_step_random": True, "first_step_masks": 5}
        return run(loss=loss, series={"smoke/input_hash": np.full(150, inputs)}, **same)

    assert "first_step" not in said(laid_out(1.0, 0.05), laid_out(2.0, 0.0))
    assert "first_step" in said(laid_out(1.0, 0.05), laid_out(1.0, 0.0))
