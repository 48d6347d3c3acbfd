"""What the recorder finds out of a script by itself, and what the detectors make of it."""

from __future__ import annotations

import numpy as np
import pytest

from trainscope.core import facts
from trainscope.core.finding import Finding
from trainscope.core.run import Run
from trainscope.detectors import by_id
from trainscope.detectors.base import Skipped

from .conftest import Record, Script, script

pytestmark = pytest.mark.slow


def findings(run: Run, detector: str) -> list[Finding]:
    one = by_id(detector)
    result = one.detect(run, one.params)
    assert not isinstance(result, Skipped), result
    return result


def test_a_schedule_that_is_as_declared_is_known_and_right(record: Record, warm_script: Script):
    run = record(*warm_script("declared", "--max-steps", "60")).runs[0]
    said = {fact["what"]: (fact["value"], fact["source"]) for fact in facts.table(run, "smoke.declared")}
    assert said == {"total_steps": (60.0, "arguments"), "warmup_steps": (10.0, "arguments")}
    assert (run.config["smoke.scheduler0.warmup"], run.config["smoke.scheduler0.horizon"]) == (10, 60)
    assert findings(run, "declared_schedule") == []
    # Six epochs of samples that nothing augments, asked for in any order; all weights decay.
    assert run.config["smoke.samples_again"] > 100
    assert run.config["smoke.samples_changed"] == 0
    assert [(one["training"], one["sequential"]) for one in facts.table(run, "smoke.loaders")] == [(True, False)]
    assert run.config["smoke.decayed"] == run.config["smoke.model.trainable_numel"]


def test_an_optimizer_that_is_built_anew_decays_no_weight_twice(record: Record, warm_script: Script):
    run = record(*warm_script("resumed")).runs[0]
    assert run.config["smoke.decayed"] == sum(p.numel for p in facts.parameters(run)) == 740
    assert run.config["smoke.decayed_vectors"] == 32 * 3 + 4


@pytest.mark.parametrize(
    ("horizon", "message"),
    [
        ("micro_batches", "2 times it, the number of micro-batches of a step"),
        ("unused", "SequentialLR was made for 60 steps and never stepped"),
        ("epochs", "10 times it, the number of steps of an epoch"),
    ],
)
def test_a_schedule_that_is_not_as_declared_is_found_with_its_factor(
    record: Record, warm_script: Script, horizon: str, message: str
):
    run = record(*warm_script("declared", "--horizon", horizon)).runs[0]
    assert message in findings(run, "declared_schedule")[0].message


def test_the_settings_of_a_trainer_are_what_is_declared(once: Record):
    pytest.importorskip("transformers")
    run = once(*script("hugging_face")).runs[0]
    (said,) = facts.table(run, "smoke.declared")
    assert (said["what"], said["value"], said["source"]) == ("total_steps", 6.0, "transformers Trainer")
    assert run.config["smoke.scheduler0.horizon"] == 6


def test_batches_that_were_dropped_are_counted(record: Record, warm_script: Script):
    run = record(*warm_script("skipping", "half")).runs[0]
    (found,) = facts.table(run, "smoke.batches")
    assert (found["given"], found["trained"], found["dropped"]) == (23, 12, 11)
    assert "11 of 23 batches" in findings(run, "skipped_batches")[0].message


@pytest.mark.parametrize(("how", "skipped"), [("all", 0), ("resume", 4)])
def test_batches_that_were_evaluated_or_skipped_on_resume_were_not_dropped(
    record: Record, warm_script: Script, how: str, skipped: int
):
    run = record(*warm_script("skipping", how)).runs[0]
    (found,) = facts.table(run, "smoke.batches")
    assert (found["dropped"], found["skipped_at_start"]) == (0, skipped)
    assert [one["training"] for one in facts.table(run, "smoke.loaders")] == [True, False]
    # Two forwards each time; after the last there is no backward to tell that they did not train.
    assert run.config["smoke.evaluations"] == run.config["smoke.evaluations_with_gradient"] == 6
    assert run.config["smoke.evaluations_in_train_mode"] == 0


def test_batches_read_ahead_by_a_trainer_were_not_dropped(once: Record):
    pytest.importorskip("accelerate")
    run = once(*script("accelerated")).runs[0]
    assert [one["dropped"] for one in facts.table(run, "smoke.batches")] == [0]


@pytest.mark.parametrize(
    ("broken", "place", "operation", "module"),
    [
        ("logarithm", "loss", "LogBackward0", "fc2"),
        ("count", "loss", "DivBackward0", "fc2"),
        ("model", "model", "DivBackward0", "first"),
        ("input", "input", None, None),
    ],
)
def test_where_a_loss_stopped_being_finite_is_said(
    record: Record, warm_script: Script, broken: str, place: str, operation, module
):
    run = record(*warm_script("not_finite", broken)).runs[0]
    assert run.config["smoke.nonfinite_step"] == 3
    assert run.config["smoke.nonfinite_place"] == place
    (one,) = findings(run, "non_finite_origin")
    if operation is not None:
        assert run.config["smoke.nonfinite_operation"] == operation
        assert run.config["smoke.nonfinite_module"] == module
        assert operation in one.message
        assert f"module {module}" in one.message
    if place == "loss":
        assert "in the loss itself, after the finite output of module fc2 (8x4, -" in one.message


def test_an_overflow_after_the_last_weights_is_put_there(record: Record, warm_script: Script):
    run = record(*warm_script("not_finite", "half")).runs[0]
    assert (run.config["smoke.nonfinite_place"], run.config["smoke.nonfinite_module"]) == ("model", "second")
    (one,) = findings(run, "non_finite_origin")
    assert "at step 3, first in the forward at or after module second (8x4)" in one.message


@pytest.mark.parametrize("how", ["once", "cleared"])
def test_expert_counters_that_add_up_are_right(record: Record, warm_script: Script, how: str):
    run = record(*warm_script("experts", how)).runs[0]
    assert (
        run.get("smoke/experts_counted").value.tolist() == run.get("smoke/experts_chosen").value.tolist() == [16] * 12
    )
    assert findings(run, "router") == []


@pytest.mark.parametrize(("how", "why"), [("twice", "2 times as many"), ("evaluation", "those of evaluation")])
def test_expert_counters_that_do_not_add_up_are_found(record: Record, warm_script: Script, how: str, why: str):
    run = record(*warm_script("experts", how)).runs[0]
    (one,) = findings(run, "router")
    assert one.title == "Expert counters do not add up"
    assert why in one.message


def test_attention_is_looked_at_every_tenth_step(record: Record, warm_script: Script):
    run = record(*warm_script("gpt", "21")).runs[0]
    assert run.get("attention/logit_max").step.tolist() == [0, 10, 20]
    # 64 causal queries that attend evenly: the mean of ln 1 ... ln 64.
    expected = float(np.mean(np.log(np.arange(1, 65, 2))))
    assert run.get("attention/entropy").value[0] == pytest.approx(expected, rel=0.05)


def test_the_processor_time_of_workers_is_known(once: Record):
    run = once(*script("workers", "fork")).runs[0]
    workers = run.get("train/worker_cpu_time")
    assert len(workers) == 5
    assert (workers.value >= 0).all()
    assert workers.value.min() < 0.5  # a step of this script takes its workers some milliseconds
    assert once(*script("plain")).runs[0].get("train/worker_cpu_time") is None


def test_a_loop_without_a_loader_is_known_by_what_its_samples_hold(once: Record):
    run = once(*script("by_hand", "average")).runs[0]
    ((seen, different),) = facts.pairs(run, "smoke.rows")
    assert seen == 60
    assert 20 < different <= 30
    # The optimizer was made twice and holds the same weights: they decay once, and norms and biases not at all.
    matrices = sum(p.numel for p in facts.parameters(run) if len(p.shape) > 1)
    assert (run.config["smoke.optimizers"], run.config["smoke.decayed"], run.config["smoke.decayed_vectors"]) == (
        2,
        matrices,
        0,
    )
    assert run.config["smoke.autocast"] == "[]"


def test_averaged_weights_are_seen_in_evaluation_and_only_whole_losses_count(once: Record):
    moving, still = (once(*script("by_hand", *words)).runs[0] for words in (["average"], []))
    spread = [run.series["smoke/eval_output_std"].value for run in (moving, still)]
    assert len(spread[0]) == 6
    assert np.ptp(spread[0]) > 0.0
    assert np.ptp(spread[1]) == 0.0
    # 8 times 4 numbers of the one loss that is a mean.
    assert set(moving.series["smoke/eval_targets"].value) == {32.0}


def test_autocast_and_what_each_of_several_optimizers_follows_are_recorded(once: Record):
    assert once(*script("autocast")).runs[0].config["smoke.autocast"] == '["bfloat16"]'
    run = once(*script("two_optimizers")).runs[0]
    parts = [run.series[f"smoke/objective_{place}"].value for place in range(2)]
    assert np.allclose(parts[0] + parts[1], run.series["smoke/objective"].value)
    # The generator's optimizer was made first, and steps second.
    assert abs(parts[0][0] - 0.69) < 0.2
    assert abs(parts[1][0] - 1.39) < 0.2


def test_what_a_loader_asked_for_is_counted(once: Record):
    run = once(*script("plain")).runs[0]
    (loader,) = facts.table(run, "smoke.loaders")
    assert (loader["samples"], loader["asked"], loader["different"]) == (48, 48, 48)


def test_checkpointed_activations_are_known(once: Record):
    assert once(*script("checkpointing")).runs[0].config["smoke.checkpointed"] is True
    run = once(*script("plain")).runs[0]
    assert run.config["smoke.checkpointed"] is False
    # A fixed piece of work beside each step.
    assert len(run.series["smoke/pace"]) == 6
    assert (run.series["smoke/pace"].value > 0).all()


def test_samples_that_are_evaluated_and_trained_on_are_counted(once: Record):
    run = once(*script("by_hand")).runs[0]
    evaluated, trained = facts.values(run, "smoke.rows_evaluated")
    assert evaluated == 8
    assert 0 < trained <= 8


@pytest.mark.parametrize(
    ("how", "used", "random", "masks"),
    [
        ("module", "[0.2]", True, True),
        ("function", "[0.2]", True, True),
        ("attention", "[0.2]", True, False),
        ("recurrent", "[0.2]", True, False),
        ("hand", "[]", True, False),
        ("none", "[]", False, False),
    ],
)
def test_dropout_is_known_however_it_is_written(
    record: Record, warm_script: Script, how: str, used: str, random: bool, masks: bool
):
    """Its masks where nothing else draws random numbers in the first forward."""
    run = record(*warm_script("dropouts", how)).runs[0]
    assert (run.config["smoke.first_step_masks"] is not None) is masks
    assert run.config["smoke.faults"] == "[]"
    assert (run.config["smoke.dropout_used"], run.config["smoke.first_step_random"]) == (used, random)
