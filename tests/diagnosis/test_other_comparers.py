"""Signals, evaluation, learning rate, data and cost: what each finds, and what it leaves alone."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from pages import HEADINGS, section
from smoke_runs import STEPS, evaluated, smoke_run

from trainscope.core.errors import ConfigError
from trainscope.core.settings import Settings
from trainscope.detectors import DETECTORS
from trainscope.diagnosis.compare import COMPARERS, compare_runs
from trainscope.diagnosis.configuration import changed

from .runs import log, losses, only, said, verdicts

FLAT = np.ones(STEPS)
EACH = pytest.mark.parametrize("comparer", COMPARERS, ids=lambda c: c.id)


@EACH
def test_a_page_has_the_fixed_headings_and_every_parameter(comparer):
    lines = comparer.page.splitlines()
    assert [line for line in lines[1:] if line and not line.startswith(" ")] == HEADINGS
    assert lines[0].startswith(f"{comparer.id}: ")
    assert comparer.compare.__module__ == f"trainscope.diagnosis.{comparer.id}"
    text = section(comparer.page, "Parameters")
    names = re.findall(r"^    ([a-z_]+(?:, [a-z_]+)*): ", text, re.MULTILINE)
    assert sorted(n for heads in names for n in heads.split(", ")) == sorted(f.name for f in fields(comparer.params))


@EACH
def test_findings_carry_the_id_of_their_comparer(comparer):
    source = Path(__import__(comparer.compare.__module__, fromlist=["x"]).__file__).read_text(encoding="utf-8")
    said_ids = {
        keyword.value.value
        for call in ast.walk(ast.parse(source))
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Finding"
        for keyword in call.keywords
        if keyword.arg == "detector"
    }
    assert said_ids == {comparer.id}


def test_no_comparer_shares_its_id_with_a_detector():
    assert not {c.id for c in COMPARERS} & {d.id for d in DETECTORS}


def test_a_smoke_run_compared_with_itself_has_no_finding_of_any_severity():
    run = smoke_run({"smoke/eval_cross_entropy": evaluated(2.0, 1.0)})
    assert compare_runs(run, [run], Settings()).findings == ()


@pytest.mark.parametrize("factor", [0.0, 0.5, 1.8, 4.0])
def test_a_gradient_norm_of_another_size_is_found(factor):
    base, run = log(losses(), train__grad_norm=FLAT), log(losses(), train__grad_norm=factor * FLAT)
    assert only(run, base, by="paired_signals").metric == "train/grad_norm"


@pytest.mark.parametrize("onset", [0, 20, 60])
def test_a_signal_is_of_another_size_from_the_step_on_at_which_it_became_so(onset):
    late = np.where(np.arange(STEPS) < onset, FLAT, 4.0 * FLAT)
    noisy = (np.arange(STEPS) - onset) % 7 == 6  # steps that are as in the baseline, now and then
    late[noisy] = FLAT[noisy]
    one = only(log(losses(), train__grad_norm=late), log(losses(), train__grad_norm=FLAT), by="paired_signals")
    assert (one.start_step, one.end_step) == (onset, STEPS - 1)
    assert one.message == (
        f"train/grad_norm is 4 times the baseline's from step {onset} on (median over the last {STEPS * 2 // 3} steps)."
    )


def test_a_signal_that_is_off_at_two_steps_in_three_is_dated_by_them():
    factor = np.where(np.arange(STEPS) % 30 < 20, 2.0, 1.0)
    one = only(log(losses(), train__grad_norm=factor), log(losses(), train__grad_norm=FLAT), by="paired_signals")
    assert one.start_step == 0


@pytest.mark.parametrize(
    ("name", "part"), [("smoke__buffer_update", "batch norms"), ("model__weight_norm", "weight decay")]
)
def test_each_signal_has_a_remedy_of_its_own(name, part):
    run, base = (log(losses(), **{name: value}) for value in (np.zeros(STEPS), FLAT))
    assert part in only(run, base, by="paired_signals").fixes[0]


def test_a_gradient_norm_of_about_the_same_size_is_no_finding():
    assert said(log(losses(), train__grad_norm=1.2 * FLAT), log(losses(), train__grad_norm=FLAT)) == {}


def test_gradient_norms_of_other_batches_get_more_room():
    base, run = log(losses(), train__grad_norm=FLAT), log(losses(seed=1), train__grad_norm=1.8 * FLAT)
    assert said(run, base) == {}


def test_a_part_of_the_loss_that_moved_on_the_same_batches_is_found():
    base, run = log(losses(), aux_loss=0.1 * FLAT), log(losses(), aux_loss=0.2 * FLAT)
    assert only(run, base, by="paired_signals").metric == "aux_loss"


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


def test_a_schedule_that_runs_twice_as_fast_is_found():
    slow, fast = np.linspace(1.0, 0.1, STEPS), np.maximum(0.1, np.linspace(1.0, -0.8, STEPS))
    base, run = log(losses(), learning_rate=slow), log(losses(), learning_rate=fast)
    assert "learning_rate_change" in said(run, base)


def test_one_percent_more_learning_rate_and_rounding_at_zero_are_no_finding():
    decay = np.linspace(1.0, 0.0, STEPS)
    base, run = log(losses(), learning_rate=decay), log(losses(), learning_rate=1.01 * decay + 1e-9)
    assert said(run, base) == {}


def test_a_loader_that_lost_its_shuffling_is_found():
    run = smoke_run({"smoke/batch_hash": np.arange(STEPS) % 22}, loaders=[{"batches": 22}])
    assert "data_change" in said(run, smoke_run())


def test_inputs_of_another_spread_are_found_and_rounding_is_not():
    def made(mean: float, std: float):
        return smoke_run({"smoke/eval_input_mean": mean * FLAT, "smoke/eval_input_std": std * FLAT})

    assert only(made(0.3, 0.4), made(0.0, 1.0), by="data_change").title == "Evaluation sees other inputs"
    assert said(made(1e-6, 1.0), made(0.0, 1.0)) == {}


@pytest.mark.parametrize("of", ["", "eval_"])
def test_a_mask_that_is_handed_over_beside_the_inputs_is_no_other_data(of):
    def made(mean: float, numbers: float):
        series = {"input_mean": mean, "input_std": 1.0, "inputs": numbers}
        return smoke_run({f"smoke/{of}{name}": value * FLAT for name, value in series.items()})

    assert said(made(0.5, 1280), made(0.0, 640)) == {}
    assert "data_change" in said(made(0.5, 660), made(0.0, 640))


def test_a_step_that_costs_more_processor_time_is_found():
    assert only(smoke_run({"train/cpu_step_time": 0.04 * FLAT}), smoke_run(), by="cost_change")


def test_a_machine_that_was_busier_for_the_run_gets_more_room():
    def made(cpu: float, wall: float):
        return smoke_run({"train/cpu_step_time": cpu * FLAT, "train/step_time": wall * FLAT})

    assert said(made(0.028, 0.06), made(0.02, 0.02)) == {}
    assert "cost_change" in said(made(0.028, 0.028), made(0.02, 0.02))
    assert "cost_change" in said(made(0.04, 0.09), made(0.02, 0.02))


def test_steps_of_a_fraction_of_a_millisecond_are_not_judged():
    assert (
        said(smoke_run({"train/cpu_step_time": 0.0014 * FLAT}), smoke_run({"train/cpu_step_time": 0.0007 * FLAT})) == {}
    )


def test_a_few_slow_steps_and_another_processor_are_not_judged():
    spikes = 0.02 * FLAT + 0.2 * (np.arange(STEPS) % 4 == 0)
    assert said(smoke_run({"train/cpu_step_time": spikes}), smoke_run()) == {}
    other = smoke_run({"train/cpu_step_time": 0.06 * FLAT}, env__processor="b")
    assert said(other, smoke_run()) == {}


def with_workers(count: int, seconds: float, own: float = 0.02):
    series = {"train/worker_cpu_time": seconds * FLAT, "train/cpu_step_time": own * FLAT}
    return smoke_run(series, loaders=[{"workers": count, "batches": 40}])


def test_workers_that_cost_more_are_found():
    one = only(with_workers(2, 0.03), with_workers(2, 0.005), by="cost_change")
    assert "takes 50 ms of CPU time (its loaders' workers included), the baseline's 25 ms" in one.message


def test_another_number_of_workers_moves_work_and_is_no_finding():
    # A queue between two processes costs the one that trains more than reading a small sample itself.
    moved = with_workers(2, 0.03, own=0.05)
    assert said(moved, smoke_run(loaders=[{"workers": 0, "batches": 40}])) == {}
    assert verdicts(moved, smoke_run())["train/cpu_step_time"] == "not judged: 2 workers of loaders, 0 in the baseline"


def test_a_few_milliseconds_are_what_surrounds_a_step():
    def made(cpu: float):
        return smoke_run({"train/cpu_step_time": cpu * FLAT})

    assert said(made(0.007), made(0.0035)) == {}
    assert "cost_change" in said(made(0.009), made(0.0035))


def test_what_was_read_of_a_loader_is_no_setting():
    def read(asked: int, batch_size: int = 16):
        return smoke_run(loaders=[{"batch_size": batch_size, "workers": 0, "asked": asked, "training": True}])

    assert changed(read(960), read(320)) == ()
    ((key, before, now),) = changed(read(960, 32), read(320))
    assert (key, before, now) == (
        "loaders", '[{"batch_size": 16, "workers": 0}]', '[{"batch_size": 32, "workers": 0}]'
    )  # fmt: skip


def test_attention_that_falls_to_few_keys_is_found():
    one = only(
        smoke_run({"attention/entropy": 0.5 * FLAT}), smoke_run({"attention/entropy": FLAT}), by="paired_signals"
    )
    assert one.metric == "attention/entropy"


def test_an_evaluation_without_class_labels_is_compared_too():
    def seen(value: float):
        return smoke_run({"smoke/eval_objective": evaluated(0.5, 0.1, value)})

    assert only(seen(0.015), seen(0.012), by="eval_change").title == "Evaluation worse than the baseline"
    assert said(seen(0.0122), seen(0.012)) == {}
    assert said(smoke_run(), seen(0.012)) == {}


def test_wall_time_alone_never_counts():
    assert said(smoke_run({"train/step_time": 9.0 * FLAT}), smoke_run({"train/step_time": FLAT})) == {}


def test_memory_that_grows_where_the_baselines_did_not_is_found():
    run = smoke_run({"memory/cpu_mb": 300.0 + 0.5 * np.arange(STEPS)})
    assert only(run, smoke_run(), by="cost_change").title == "Memory grows"


def test_a_higher_peak_that_does_not_grow_is_found_and_a_little_more_is_not():
    assert only(smoke_run({"memory/peak_mb": 400.0 * FLAT}), smoke_run(), by="cost_change").title == "More memory"
    assert said(smoke_run({"memory/peak_mb": 330.0 * FLAT}), smoke_run()) == {}


def test_where_runs_part_is_only_told_beside_a_finding():
    found = compare_runs(log(losses() + 0.2), [log(losses())], Settings()).findings
    assert [f.detector for f in found] == ["paired_loss", "first_difference"]
    assert [f.detector for f in compare_runs(log(losses() + 0.005), [log(losses())], Settings()).findings] == []


def test_settings_choose_and_tune_comparers():
    run, base = log(losses() + 0.05), log(losses())
    assert said(run, base, detectors={"paired_loss": {"absolute": 0.2}}) == {}
    assert said(run, base, ignore=["paired_loss"]) == {}
    with pytest.raises(ConfigError, match=r"detectors\.paired_loss\.absolut: no such parameter"):
        compare_runs(run, [base], Settings(detectors={"paired_loss": {"absolut": 1.0}}))


def test_what_each_optimizer_follows_is_compared_whichever_was_made_first():
    def run(*levels: float):
        noise = 0.02 * np.random.default_rng(0).standard_normal(STEPS)
        return smoke_run({f"smoke/objective_{i}": level + noise for i, level in enumerate(levels)})

    assert said(run(1.4, 0.7), run(0.7, 1.4)) == {}
    assert "paired_signals" in said(run(1.4, 0.4), run(0.7, 1.4))
    assert "paired_signals" in said(run(0.4, 1.4), run(0.7, 1.4))
