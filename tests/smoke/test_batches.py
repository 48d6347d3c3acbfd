"""Batches are numbered as training takes them, described, and left out where a replay says so."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable

import numpy as np
import pytest

from .conftest import SCRIPTS, Record, Script, numbers, script

pytestmark = pytest.mark.slow


def positions(run) -> list[int]:
    return run.series["batch_index"].value.astype(int).tolist()


def hashes(run) -> list[float]:
    return run.series["smoke/batch_hash"].value.tolist()


def test_a_step_names_the_position_of_its_batch(once: Record):
    run = once(*script("plain")).runs[0]
    assert positions(run) == [0, 1, 2, 3, 4, 5]
    assert run.series["batch/count"].value.tolist() == [1] * 6
    assert run.config["smoke.training_loader"] == 0
    assert set(run.series["batch/size"].value) == {8 * 16.0}
    assert (np.abs(run.series["batch/std"].value - 1) < 0.2).all()
    assert run.series["batch/non_finite"].value.tolist() == [0] * 6


def test_positions_go_on_over_epochs_and_evaluations_take_none(record: Record, warm_script: Script):
    run = record(*warm_script("epochs")).runs[0]
    # Four batches were trained on and a fifth was taken and not used.
    assert positions(run) == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10]
    assert positions(record(*warm_script("epochs", "anew")).runs[0]) == list(range(12))


def test_micro_batches_are_counted_and_a_wrapper_that_fetches_ahead_changes_nothing(once: Record):
    for name, each in (("accumulation", 4), ("accelerated", 2), ("hugging_face", 2)):
        run = once(*script(name)).runs[0]
        assert positions(run) == [each * step for step in range(len(positions(run)))], name
        assert set(run.series["batch/count"].value) == {each}, name


def test_the_tokens_of_a_model_are_described(once: Record):
    run = once(*script("hugging_face")).runs[0]
    assert (run.series["batch/token_entropy"].value > 1).all()
    assert (run.series["batch/size"].value == 4 * 16).all()


def test_batches_without_a_loader_are_described_and_counted_as_the_model_gets_them(record: Record, warm_script: Script):
    run = record(*warm_script("drawn")).runs[0]
    assert positions(run) == [0, 1, 2, 3, 4, 5]
    assert len(run.series["batch/std"]) == len(run.series["train/loss"]) == 6
    assert run.config["smoke.training_loader"] is None
    assert positions(record(*warm_script("drawn", "accumulate")).runs[0]) == [0, 2, 4, 6, 8, 10]


@pytest.mark.parametrize("how", ["", "accumulate", "norm", "closure", "scaler"])
def test_an_update_that_is_left_out_leaves_the_rest_of_the_training_as_if_it_had_never_been(
    record: Record, warm_script: Script, plain: Callable[..., str], how: str
):
    """The oracle is the script itself, which puts weights, buffers and optimizer back by hand."""
    micro = 2 if how == "accumulate" else 1
    if how == "closure":  # two forwards a step
        micro = 2
    whole = record(*warm_script("drawn", how)).runs[0]
    skip = tuple(position for step in (1, 4) for position in range(step * micro, (step + 1) * micro))
    replay = record(*warm_script("drawn", how), skip=skip, method="skip_update")
    assert numbers(replay.output) == numbers(plain(script("drawn", how), WITHOUT="1 4"))
    assert numbers(replay.output) != numbers(plain(script("drawn", how)))
    (run,) = replay.runs
    assert positions(run) == [p for p in positions(whole) if p not in skip]
    assert hashes(run) == [h for place, h in enumerate(hashes(whole)) if place not in {1, 4}]
    assert json.loads(run.config["smoke.dropped_batches"]) == list(skip)
    assert run.config["smoke.skip_method"] == "skip_update"
    assert run.config["smoke.faults"] == "[]"


def test_the_first_update_of_all_can_be_left_out(record: Record, warm_script: Script, plain: Callable[..., str]):
    replay = record(*warm_script("drawn"), skip=(0,), method="skip_update")
    assert numbers(replay.output) == numbers(plain(script("drawn"), WITHOUT="0"))
    assert positions(replay.runs[0]) == [1, 2, 3, 4, 5]


def test_leaving_out_no_update_trains_the_same_bit_by_bit(
    record: Record, warm_script: Script, plain: Callable[..., str]
):
    replay = record(*warm_script("drawn", "norm"), skip=(), method="skip_update")
    assert numbers(replay.output) == numbers(plain(script("drawn", "norm")))


@pytest.mark.parametrize("name", ["plain", "workers"])
def test_a_replay_drops_the_batches_and_gives_all_others_as_they_were(
    record: Record, once: Record, warm_script: Script, name: str
):
    arguments = ("fork",) if name == "workers" else ()
    whole = once(*script(name, *arguments)).runs[0]
    replay = record(*warm_script(name, *arguments), skip=(1, 4)).runs[0]
    assert positions(replay) == [0, 2, 3, 5]
    assert hashes(replay) == [h for place, h in enumerate(hashes(whole)) if place not in {1, 4}]
    dropped = json.loads(replay.config["smoke.dropped_hashes"])
    assert json.loads(replay.config["smoke.dropped_batches"]) == [1, 4]
    assert json.loads(replay.config["smoke.skip_batches"]) == [1, 4]
    assert len(set(dropped)) == 2
    assert whole.series["train/loss"].value[0] == replay.series["train/loss"].value[0]


def test_a_plan_may_leave_out_more_batches_than_a_variable_of_the_environment_holds(
    record: Record, warm_script: Script
):
    skip = (1, 4, *range(100_000, 140_000))
    replay = record(*warm_script("plain"), skip=skip).runs[0]
    assert positions(replay) == [0, 2, 3, 5]
    assert json.loads(replay.config["smoke.dropped_batches"]) == [1, 4]


@pytest.mark.parametrize("name", ["accelerated", "hugging_face"])
def test_a_replay_drops_whole_windows_of_accumulation(record: Record, once: Record, warm_script: Script, name: str):
    whole = once(*script(name)).runs[0]
    replay = record(*warm_script(name), skip=(2, 3)).runs[0]
    assert positions(replay) == [p for p in positions(whole) if p != 2]
    assert hashes(replay) == [h for place, h in enumerate(hashes(whole)) if place != 1]


def test_a_replay_that_drops_nothing_trains_the_same_bit_by_bit(
    record: Record, warm_script: Script, plain: Callable[..., str]
):
    assert numbers(record(*warm_script("plain"), skip=()).output) == numbers(plain(script("plain")))


def test_a_stream_that_one_process_reads_for_all_has_the_batches_of_all_at_each_step(
    record: Record, warm_script: Script
):
    pytest.importorskip("accelerate")
    alone = record(*warm_script("dispatched"), skip=(2, 5))
    assert positions(alone.runs[0]) == [0, 1, 3, 4, 6, 7]
    ranks = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone")
    launch = (*ranks, str(SCRIPTS / "dispatched.py"))
    whole = record(*launch)
    assert positions(whole.runs[0]) == [0, 2, 4, 6]
    assert whole.runs[0].series["batch/count"].value.tolist() == [2, 2, 2, 2]
    replay = record(*launch, skip=(2, 3))
    assert positions(replay.runs[0]) == [0, 4, 6]
    got, again = (re.findall(r"got (\d) (-?0x[0-9a-f.]+p[+-]\d+)", one.output) for one in (whole, replay))
    for rank in "01":
        mine, theirs = ([value for of, value in lines if of == rank] for lines in (got, again))
        assert len(mine) == 4
        assert theirs == [value for place, value in enumerate(mine) if place != 1]


def test_a_batch_of_a_second_epoch_can_be_dropped(record: Record, warm_script: Script):
    replay = record(*warm_script("epochs", "anew"), skip=(0, 7)).runs[0]
    assert positions(replay) == [1, 2, 3, 4, 5, 6, 8, 9, 10, 11]


@pytest.mark.parametrize("how", ["draw", "load"])
def test_batches_that_a_script_leaves_out_itself_count_too(record: Record, warm_script: Script, how: str):
    whole = record(*warm_script("leaving_out", how)).runs[0]
    # Six batches an epoch; the last one of the first and the second of the next are among those left out.
    assert positions(whole) == [0, 3, 4, 6, 8, 9, 10, 11]
    assert set(whole.series["batch/count"].value) == {1.0}
    replay = record(*warm_script("leaving_out", how), skip=(4, 8)).runs[0]
    assert positions(replay) == [0, 3, 6, 9, 10, 11]
