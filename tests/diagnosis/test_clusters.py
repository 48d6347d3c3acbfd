"""Runs that broke in the same way."""

import numpy as np
import pytest

from trainscope.diagnosis.case import Case
from trainscope.diagnosis.clusters import clusters, linkage
from trainscope.diagnosis.signature import distance, signature
from trainscope.diagnosis.signs import Stage

from .cases import LOSS_ONLY, RATE_FIRST, Cause, broken, stable


def test_runs_of_two_kinds_are_two_clusters_and_stable_runs_are_in_none():
    cases = [
        *(broken(f"rate{i}", signs=RATE_FIRST, cause=Cause.SCHEDULE) for i in range(3)),
        *(broken(f"loss{i}", signs=LOSS_ONLY) for i in range(2)),
        stable("fine"),
    ]
    first, second = clusters(cases)
    assert [case.run.name for case in first.members] == ["rate0", "rate1", "rate2"]
    assert [case.run.name for case in second.members] == ["loss0", "loss1"]
    assert first.signals == ("learning_rate", "train/grad_norm", "train/loss")
    assert first.first is Stage.SCHEDULE
    assert first.causes == {Cause.SCHEDULE: 3}
    assert first.found == {"lr_schedule": 3, "spikes": 3}
    assert first.lead is not None
    assert (first.lead.median, first.lead.least, first.lead.most, first.lead.runs) == (4, 4, 4, 3)


def test_a_pair_is_not_called_after_what_only_one_of_them_showed():
    signs = (("train/grad_norm", 100, None, None), ("train/loss", 100, "spikes", None))
    pair = [
        broken("batch", signs=signs, cause=Cause.DATA),
        broken("rate", signs=(("learning_rate", 99, None, None), *signs), cause=Cause.SCHEDULE),
    ]
    (found,) = clusters(pair)
    assert found.signals == ("train/grad_norm", "train/loss")
    assert found.first is Stage.GRADIENT
    assert found.shares["learning_rate"] == 0.5
    assert found.causes == {Cause.DATA: 1, Cause.SCHEDULE: 1}


def test_the_order_of_the_runs_does_not_matter():
    cases = [broken(f"r{i}", signs=RATE_FIRST if i % 3 else LOSS_ONLY) for i in range(9)]
    names = [[case.run.name for case in c.members] for c in clusters(cases)]
    assert names == [[case.run.name for case in c.members] for c in clusters(cases[::-1])]


def test_lead_is_the_median_and_range_of_those_whose_loss_shows_it():
    def led(name, lead):
        return broken(
            name, signs=(("train/grad_norm", 100 - lead, "grad_norm", None), ("train/loss", 100, "spikes", None))
        )

    (found,) = clusters([led("a", 1), led("b", 2), led("c", 7)])
    assert (found.lead.median, found.lead.least, found.lead.most) == (2, 1, 7)


def test_what_comes_after_the_loss_is_aftermath():
    late = broken("late", signs=(*LOSS_ONLY, ("update_ratio", 130, None, "blocks.1.mlp")))
    assert signature(late) == signature(broken("plain", signs=LOSS_ONLY))


def test_the_number_of_a_block_is_no_place_of_its_own():
    where = [signature(broken("a", signs=(("train/grad_norm", 90, None, f"blocks.{i}.mlp"),))) for i in (1, 12)]
    assert where[0].places == frozenset({"blocks.*.mlp"})
    assert distance(*where) == 0.0


def test_distances_by_hand():
    one, two = (signature(broken("x", signs=signs)) for signs in (RATE_FIRST, LOSS_ONLY))
    # Three signals and two detectors against one of each, with one signal in common.
    assert distance(one, two) == pytest.approx(1 - 1 / 6)
    assert distance(one, one) == 0.0
    swapped = (("train/grad_norm", 90, None, None), *RATE_FIRST)
    other = signature(broken("x", signs=swapped))
    # The same signals, one of three pairs in opposite order; no place anywhere.
    assert distance(one, other) == pytest.approx(0.25 / 3)


def test_linkage_is_average_linkage_with_weights():
    far = np.array([[0, 0.1, 0.9], [0.1, 0, 0.2], [0.9, 0.2, 0]])
    # 0 and 1 join; their mean distance to 2 is 0.55, or 0.9 * 9 / 10 + 0.2 / 10 = 0.83 where 0 stands for nine.
    assert linkage(far, np.ones(3), 0.6) == [[0, 1, 2]]
    assert linkage(far, np.ones(3), 0.5) == [[0, 1], [2]]
    assert linkage(far, np.array([9.0, 1.0, 1.0]), 0.6) == [[0, 1], [2]]
    assert linkage(np.zeros((0, 0)), np.zeros(0)) == []


def test_all_stable_is_no_cluster_and_one_broken_run_is_one():
    assert clusters([stable("a"), stable("b")]) == ()
    assert len(clusters([broken("a")])) == 1


def test_the_main_story_is_one_that_the_loss_shows():
    quiet = broken("a", signs=(("train/grad_norm", 10, "grad_norm", None),)).stories[0]
    loud = broken("a", signs=LOSS_ONLY).stories[0]
    case = broken("a", signs=LOSS_ONLY)
    both = Case(case.run, case.findings, (quiet, loud), case.judged)
    assert both.main is loud
