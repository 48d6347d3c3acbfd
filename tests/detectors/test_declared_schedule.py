from __future__ import annotations

import numpy as np
import pytest

from trainscope.core.finding import Severity
from trainscope.detectors.declared_schedule import Params, detect
from trainscope.detectors.engine.plan import curve

from .smoke_runs import STEPS, found, single, skipped, smoke_run

ID = "declared_schedule"


def said(what: str, value: float, name: str = "", source: str = "arguments") -> dict[str, object]:
    return {"what": what, "value": value, "name": name or what, "source": source}


def declared(series=None, **facts):
    """A run of 150 of 1000 declared steps, its scheduler of the same length and stepped once a step."""
    given = {"declared": [said("total_steps", 1000, "max_steps")], "scheduler0__horizon": 1000.0} | facts
    return smoke_run(series, **given)


def warmed(steps: int, peak: float = 1e-3) -> dict[str, np.ndarray]:
    return {"learning_rate": peak * np.minimum(1.0, (np.arange(STEPS) + 1) / steps)}


def test_a_schedule_as_long_as_declared_is_right():
    assert found(ID, declared()) == []
    assert found(ID, declared(scheduler0__horizon=960.0)) == []


def test_a_decay_that_counts_from_the_end_of_its_warm_up_is_right():
    facts = [said("total_steps", 1000), said("warmup_steps", 100)]
    assert found(ID, declared(warmed(100), declared=facts, scheduler0__horizon=900.0)) == []


def test_nothing_declared_is_nothing_to_judge():
    assert "nothing is declared" in skipped(ID, smoke_run(declared=None))


def test_a_horizon_in_micro_batches_is_found_with_its_factor():
    run = declared({"micro_batches": np.full(STEPS, 4.0)}, scheduler0__horizon=4000.0)
    message = single(ID, run).message
    assert "ends at step 4000, after the 1000 steps of --max-steps" in message
    assert "4 times it, the number of micro-batches" in message


def test_a_horizon_in_micro_batches_is_found_where_each_epoch_ends_with_a_short_window():
    facts = {"declared": [said("epochs", 7)], "loaders": [{"batches": 13, "training": True}]}
    run = declared({"micro_batches": np.full(STEPS, 2.0)}, scheduler0__horizon=91.0, **facts)
    assert "2 times it, the number of micro-batches" in single(ID, run).message


def test_a_rate_that_something_else_sets_to_its_peak_is_found_whatever_the_scheduler_says():
    facts = {"declared": [said("total_steps", 1000), said("warmup_steps", 40)], "scheduler0__warmup": 40.0}
    flat = {"learning_rate": np.full(STEPS, 1e-3)}
    assert "starts at its peak, declared are 40" in single(ID, declared(flat, **facts)).message
    assert found(ID, declared(warmed(40), **facts)) == []


def test_a_rate_that_is_not_recorded_to_the_end_of_its_warm_up_is_taken_at_its_word():
    facts = {"declared": [said("total_steps", 1000), said("warmup_steps", 400)], "scheduler0__warmup": 400.0}
    assert found(ID, declared({"learning_rate": np.full(STEPS, 1e-3)}, **facts)) == []


def test_a_scheduler_stepped_once_a_micro_batch_ends_early():
    steps = {"micro_batches": np.full(STEPS, 4.0), "smoke/scheduler_steps": np.full(STEPS, 4.0)}
    assert "ends at step 250, before the 1000 steps" in single(ID, declared(steps)).message


def test_a_horizon_times_the_processes_is_found():
    assert "number of processes" in single(ID, declared(scheduler0__horizon=8000.0, env__world_size=8)).message


def test_accelerate_steps_once_a_process_for_a_horizon_that_counts_all_of_them():
    run = declared({"smoke/scheduler_steps": np.full(STEPS, 8.0)}, scheduler0__horizon=8000.0, env__world_size=8)
    assert found(ID, run) == []
    forgotten = declared({"smoke/scheduler_steps": np.full(STEPS, 8.0)}, env__world_size=8)
    assert "ends at step 125, before" in single(ID, forgotten).message


def test_steps_declared_and_stepped_once_an_epoch_are_found():
    epochs = (np.arange(STEPS) % 30 == 29).astype(float)
    run = declared({"smoke/scheduler_steps": epochs}, loaders=[{"batches": 30, "training": True}])
    assert "number of steps of an epoch" in single(ID, run).message


def test_epochs_declared_and_stepped_once_an_epoch_are_right():
    epochs = (np.arange(STEPS) % 30 == 29).astype(float)
    run = declared(
        {"smoke/scheduler_steps": epochs},
        declared=[said("epochs", 10)],
        loaders=[{"batches": 30, "training": True}, {"batches": 4, "training": False}],
        scheduler0__horizon=10.0,
    )
    assert found(ID, run) == []


def test_a_run_shortened_on_purpose_keeps_the_long_schedule():
    assert found(ID, declared(scheduler0__horizon=100_000.0)) == []


def test_a_schedule_that_is_too_short_by_no_known_factor_is_found():
    one = single(ID, declared(scheduler0__horizon=600.0, scheduler0__class="CosineAnnealingLR"))
    assert "ends at step 600, before" in one.message
    assert one.severity is Severity.ERROR


def test_a_function_may_have_a_floor_after_its_end():
    assert single(ID, declared(scheduler0__horizon=600.0, scheduler0__class="LambdaLR")).severity is Severity.INFO
    half = declared({"micro_batches": np.full(STEPS, 2.0)}, scheduler0__horizon=500.0, scheduler0__class="LambdaLR")
    assert single(ID, half).severity is Severity.ERROR


@pytest.mark.parametrize("horizon", [150, 165, 180])
def test_the_last_window_of_an_epoch_may_count_or_not(horizon):
    facts = {"declared": [said("epochs", 30)], "loaders": [{"batches": 44, "training": True}]}
    series = {"micro_batches": np.full(STEPS, 8.0)}
    assert found(ID, declared(series, scheduler0__horizon=float(horizon), **facts)) == []


def test_a_scheduler_that_never_steps_is_found():
    unused = [{"class": "CosineAnnealingLR", "horizon": 1000.0, "warmup": None}]
    run = declared({"smoke/scheduler_steps": np.zeros(STEPS)}, schedulers=0, schedulers_unused=unused)
    assert "CosineAnnealingLR was made for 1000 steps and never stepped" in single(ID, run).message


@pytest.mark.parametrize(
    ("total", "class_", "moves", "is_found"),
    [(160, "StepLR", 0.0, True), (200, "StepLR", 0.0, False), (160, "StepLR", 1e-5, False),
     (160, "ReduceLROnPlateau", 0.0, False)],
)  # fmt: skip
def test_a_scheduler_of_unknown_length_has_never_stepped_when_the_declared_steps_are_over(
    total, class_, moves, is_found
):
    facts = {"schedulers": 0, "schedulers_unused": [{"class": class_, "horizon": None, "warmup": None}]}
    series = {"smoke/scheduler_steps": np.zeros(STEPS), "learning_rate": 1e-3 + moves * np.arange(STEPS)}
    run = declared(series, declared=[said("total_steps", total)], scheduler0__horizon=None, **facts)
    told = [f.message for f in found(ID, run)]
    assert told == (["StepLR was made and never stepped: learning_rate stays at 0.001."] if is_found else [])


def test_a_warm_up_as_declared_is_right_whether_it_counts_from_0_or_1():
    for rates in (warmed(40), {"learning_rate": 1e-3 * np.minimum(1.0, np.arange(STEPS) / 40)}):
        assert found(ID, declared(rates, declared=[said("warmup_steps", 40)])) == []


@pytest.mark.parametrize(("took", "wanted", "reason"), [(20, 80, "micro-batches"), (100, 50, None)])
def test_a_warm_up_of_another_length_is_found(took, wanted, reason):
    series = warmed(took) | {"micro_batches": np.full(STEPS, 4.0)}
    message = single(ID, declared(series, declared=[said("warmup_steps", wanted)])).message
    assert f"declared are {wanted} (--warmup-steps)" in message
    assert reason is None or reason in message


def test_a_lost_warm_up_is_found_where_a_schedule_is_at_work():
    run = declared(
        {"learning_rate": np.linspace(1e-3, 5e-4, STEPS)},
        declared=[said("warmup_steps", 40, source="TrainingArguments")],
    )
    assert "starts at its peak, declared are 40 (warmup_steps of the TrainingArguments)" in single(ID, run).message


def test_a_constant_rate_without_a_scheduler_does_not_use_the_option():
    run = declared({"smoke/scheduler_steps": np.zeros(STEPS)}, declared=[said("warmup_steps", 40)], schedulers=0)
    assert found(ID, run) == []


def test_a_warm_up_that_the_recording_does_not_reach_the_end_of_is_not_judged():
    assert found(ID, declared(warmed(400), declared=[said("warmup_steps", 400)])) == []


def test_the_settings_win_over_what_the_run_says():
    result = detect(declared(), Params(total_steps=2000, warmup_steps=30))
    assert isinstance(result, list)
    assert "declared are 30 (the settings)" in result[0].message or "2000 steps of the settings" in result[0].message


@pytest.mark.parametrize("shape", ["constant", "linear", "cosine"])
def test_a_declared_shape_is_judged_step_by_step(shape):
    step = np.arange(STEPS, dtype=float)
    right = curve(step, 20, 300, 1e-3, shape)
    params = Params(warmup_steps=20, total_steps=300, peak=1e-3, shape=shape)
    for rates in (right, curve(step + 1, 20, 300, 1e-3, shape)):
        assert detect(smoke_run({"learning_rate": rates}), params) == []
    wrong = curve(2 * step, 20, 300, 1e-3, shape)
    result = detect(smoke_run({"learning_rate": wrong}), params)
    assert isinstance(result, list)
    assert f"({shape}, warm-up 20, 300 steps, peak 0.001)" in result[0].message


def test_a_peak_above_the_declared_one_is_found():
    result = detect(smoke_run(), Params(peak=1e-4))
    assert isinstance(result, list)
    assert "reaches 0.001, declared is a peak of 0.0001" in result[0].message


def test_a_shape_that_nobody_knows_is_said():
    assert "none of constant" in detect(declared(), Params(shape="square")).reason


def test_known_false_positive_an_option_that_counts_tokens():
    assert found(ID, declared(warmed(40), declared=[said("warmup_steps", 160)]))


def by_hand(horizon: float, warm: int = 20, floor: float = 0.0, shape: str = "cosine") -> dict[str, np.ndarray]:
    step = np.arange(STEPS, dtype=float)
    decay = curve(step, warm, horizon, 1.0, shape)
    rate = np.where(step < warm, (step + 1) / warm, floor + (1 - floor) * decay)
    return {"learning_rate": 1e-3 * rate, "micro_batches": np.full(STEPS, 2.0)}


def declared_by_hand(series):
    none = {"schedulers": 0, "scheduler0__horizon": None}
    return smoke_run(series, declared=[said("total_steps", 400)], **none)


@pytest.mark.parametrize("shape", ["cosine", "linear"])
def test_a_rate_set_by_hand_that_heads_for_the_declared_end_is_right(shape):
    assert found(ID, declared_by_hand(by_hand(400, shape=shape))) == []


@pytest.mark.parametrize(("horizon", "factor"), [(800, "2 times it"), (200, "a 2th of it")])
def test_a_rate_set_by_hand_in_micro_batches_is_found(horizon, factor):
    one = single(ID, declared_by_hand(by_hand(horizon)))
    assert one.severity is Severity.WARNING
    assert f"{factor}, the number of micro-batches of a step" in one.message


@pytest.mark.parametrize(
    "series",
    [
        by_hand(400, floor=0.1),
        by_hand(800, floor=0.1),
        {"learning_rate": 1e-3 * 0.99 ** np.arange(STEPS)},
        {"learning_rate": 1e-3 / np.sqrt(1.0 + np.arange(STEPS))},
    ],
)
def test_a_floor_and_other_shapes_tell_no_length(series):
    assert found(ID, declared_by_hand(series)) == []


def test_a_rate_set_by_hand_that_ends_early_for_no_known_reason_is_an_information():
    assert single(ID, declared_by_hand(by_hand(300))).severity is Severity.INFO
