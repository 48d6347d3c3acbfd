"""A launch of several ranks is one training, told by the rank that shows most."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from trainscope.diagnosis.ranks import are_one_launch, folders, launches, rank_of, teller, told_by
from trainscope.diagnosis.signs import Cause

from .cases import broken, stable

ALONE = (("train/grad_norm", 100, "grad_norm", None),)
LOSS = (("train/grad_norm", 100, "grad_norm", None), ("train/loss", 100, "spikes", None))


def of_rank(case, rank, launch="runs/gpt"):
    return replace(case, run=replace(case.run, source=f"{launch}_rank{rank}", format="recorded"))


def test_ranks_are_known_by_the_folders_that_the_recorder_makes():
    run = of_rank(stable("a"), 12).run
    assert rank_of(run) == 12
    assert rank_of(replace(run, format="jsonl")) is None
    assert rank_of(replace(run, source="runs/gpt")) is None


def test_a_launch_is_told_by_the_rank_whose_loss_shows_it():
    ranks = [of_rank(broken("a", signs=ALONE), 0), of_rank(broken("b", signs=LOSS, cause=Cause.DATA), 1)]
    assert teller(ranks) is ranks[1]
    assert teller(ranks[::-1]) is ranks[1]
    assert told_by(ranks) == "rank 1 of 2 recorded ranks, which shows the incident best (rank 0: from step 100)"
    assert folders(ranks) == [Path("runs/gpt_rank1"), Path("runs/gpt_rank0")]


def test_of_ranks_that_show_the_same_the_one_that_is_explained_tells_and_else_the_first():
    plain = [of_rank(broken("a", signs=LOSS), 0), of_rank(broken("b", signs=LOSS), 1)]
    assert teller(plain[::-1]) is plain[0]
    known = of_rank(broken("c", signs=LOSS, cause=Cause.DATA), 2)
    assert teller([*plain, known]) is known


def test_the_earliest_of_equal_incidents_tells():
    early = of_rank(broken("a", signs=(("train/loss", 90, "spikes", None),)), 3)
    ranks = [of_rank(broken("b", signs=(("train/loss", 95, "spikes", None),), cause=Cause.DATA), 0), early]
    assert teller(ranks) is early


def test_a_healthy_launch_is_told_by_its_first_rank():
    ranks = [of_rank(stable("b"), 1), of_rank(stable("a"), 0)]
    assert teller(ranks) is ranks[1]
    assert told_by(ranks) == "rank 0 of 2 recorded ranks; none of them has an incident"
    one_broke = [*ranks, of_rank(broken("c"), 2)]
    assert told_by(one_broke) == (
        "rank 2 of 3 recorded ranks, which shows the incident best (rank 1: nothing, rank 0: nothing)"
    )
    assert told_by(ranks[:1]) is None


def test_many_ranks_are_counted_and_not_all_named():
    said = told_by([of_rank(broken("a"), n) for n in range(32)])
    assert said is not None
    assert "rank 8: from step 100, and 23 more)" in said


def test_runs_of_other_launches_and_logs_stay_apart():
    one, two = of_rank(stable("a"), 0), of_rank(stable("b"), 1)
    other, log = of_rank(stable("c"), 0, "runs/bert"), stable("d")
    assert [len(ranks) for ranks in launches([one, log, other, two, stable("d")])] == [2, 1, 1, 1]
    assert are_one_launch([one.run, two.run])
    assert are_one_launch([log.run])
    assert not are_one_launch([one.run, other.run])
    assert not are_one_launch([log.run, log.run])
    assert not are_one_launch([one.run, log.run])
    assert not are_one_launch([])
