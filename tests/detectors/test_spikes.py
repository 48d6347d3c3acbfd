from __future__ import annotations

import numpy as np
import pytest
from synthetic import noise

from trainscope.core.finding import Severity
from trainscope.detectors.base import MOST, Skipped

from .runs import at, falling, findings, judged, level, only, run_of


def spikes(x: np.ndarray, **params: object) -> list:
    return findings("spikes", run_of({"train/loss": x}), **params)


@pytest.mark.parametrize("index", [9, 12, 40, 200, 390, 399])
def test_a_single_point_is_found_at_its_step_wherever_it_is(index):
    x = falling()
    x[index] *= 3.0
    (found,) = spikes(x)
    assert (found.start_step, found.peak_step, found.end_step) == (at(index),) * 3
    assert found.severity is Severity.WARNING
    assert found.evidence["value"] == x[index]
    assert found.evidence["baseline"] == pytest.approx(np.median(x[max(0, index - 25) : index]))
    assert ("the log ends there" if index == 399 else "came back at once") in found.message


def test_a_burst_is_one_spike_with_its_peak_and_its_end():
    x = falling()
    x[200:204] *= [1.4, 2.5, 2.0, 1.6]
    (found,) = spikes(x)
    assert (found.start_step, found.peak_step) == (at(200), at(201))
    assert at(203) <= found.end_step <= at(205)


def test_it_is_back_at_the_first_step_that_is_not_of_the_spike():
    x = np.full(400, 2.0) + 0.02 * np.random.default_rng(0).standard_normal(400)
    x[200:203] = 7.0, 6.9, 6.8
    (found,) = spikes(x)
    assert (found.start_step, found.end_step) == (at(200), at(202))
    assert found.message.endswith(f"and was back by step {at(203)}.")


def test_the_slow_way_back_is_no_second_spike():
    x = falling()
    x[200:230] *= 1.0 + np.exp(-np.arange(30) / 8.0)
    (found,) = spikes(x)
    assert found.start_step == found.peak_step == at(200)
    assert at(215) <= found.end_step <= at(232)
    assert f"was back by step {found.end_step + at(0)}" in found.message


def test_a_large_spike_does_not_hide_a_small_one():
    x = falling()
    x[150:153] *= 50.0
    x[250:252] *= 1.4
    assert [f.start_step for f in spikes(x)] == [at(150), at(250)]


def test_the_worst_are_kept_and_the_message_counts_all():
    x = falling()
    for begin, height in zip(range(30, 390, 25), np.linspace(3.0, 5.0, 15), strict=True):
        x[begin : begin + 2] *= height
    found = spikes(x)
    assert len(found) == MOST
    assert {f.evidence["spikes"] for f in found} == {15}
    assert "one of 15 spikes" in found[0].message
    assert [f.start_step for f in found] == sorted(f.start_step for f in found)


def test_the_first_is_told_even_where_all_others_are_worse():
    x = falling()
    for begin, height in zip(range(30, 390, 25), [2.0, *np.linspace(3.0, 5.0, 14)], strict=True):
        x[begin : begin + 2] *= height
    found = spikes(x)
    assert len(found) == MOST
    assert found[0].start_step == at(30)
    assert found[0].evidence["score"] == min(f.evidence["score"] for f in found)
    assert max(f.evidence["score"] for f in found[1:]) > 2.0 * found[0].evidence["score"]


def test_a_wide_bump_in_a_wide_noise_is_told_once():
    x = level(n=4000, sd=0.15)
    x[1500:1800] *= 1.0 + 1.5 * np.sin(np.pi * np.arange(300) / 300.0)
    (found,) = spikes(x)
    assert at(1500) <= found.start_step <= at(1560)
    assert at(1740) <= found.end_step <= at(1840)
    assert spikes(level(n=4000, sd=0.15)) == []


def test_a_critic_that_drifts_hides_no_excursion_of_its_loss():
    """What the drift is to `divergence` must not swallow it."""
    x = -20.0 + level(n=2000, sd=0.5) + np.interp(np.arange(2000), [0, 1200, 2000], [0.0, 0.0, 25.0])
    run = run_of({"G_GAN": x, "D_GAN": level(n=2000, seed=1)})
    assert findings("spikes", run) == []
    x[600:800] += 300.0 * np.sin(np.pi * np.arange(200) / 200.0)
    (found,) = findings("spikes", run_of({"G_GAN": x, "D_GAN": level(n=2000, seed=1)}))
    assert found.metric == "G_GAN"
    assert at(590) <= found.start_step <= at(640)


def test_single_peaks_that_recur_are_one_piece_of_information():
    x = falling()
    x[range(30, 390, 25)] *= 2.0
    (found,) = spikes(x)
    assert found.severity is Severity.INFO
    assert (found.start_step, found.end_step) == (at(30), at(380))
    assert found.evidence["peaks"] == 15


def test_one_peak_far_above_those_that_recur_is_still_a_spike():
    x = level(n=1000)
    x[range(60, 960, 100)] *= 1.3
    x[705] *= 20.0
    assert [(f.severity, f.peak_step) for f in spikes(x) if f.severity is Severity.WARNING] == [
        (Severity.WARNING, at(705))
    ]


def test_a_fall_is_no_spike():
    x = falling()
    x[200] *= 0.3
    x[300:310] *= 0.5
    assert spikes(x) == []


def test_a_batch_that_stands_out_of_gaussian_noise_does_not_stand_out_of_heavy_tails():
    for kind, expected in (("gauss", 1), ("t3", 0)):
        x = falling(n=2000, sd=0.01, kind=kind)
        x[1000] += 14 * 0.01 * x[1000] if kind == "gauss" else 8 * 0.01 * x[1000]
        assert len(spikes(x)) == expected, kind


def test_what_is_too_small_to_act_on_is_left_out_and_may_be_asked_for():
    x = level(sd=0.0015)
    x[200] *= 1.025
    assert spikes(x) == []
    assert [f.start_step for f in spikes(x, min_rise=0.01)] == [at(200)]


def test_more_false_alarms_allowed_means_more_found():
    x = falling(sd=0.02)
    x[200] *= 1.17
    counts = [len(spikes(x, false_alarms=budget)) for budget in (1e-9, 1e-3, 1.0)]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]


def test_each_part_of_a_loss_is_judged_where_there_is_no_whole():
    box, cls = falling(), falling(seed=1)
    cls[300] *= 3.0
    found = only("spikes", run_of({"train/box_loss": box, "train/cls_loss": cls}))
    assert (found.metric, found.start_step) == ("train/cls_loss", at(300))


def test_the_parts_are_left_alone_where_there_is_a_whole():
    part = falling()
    part[300] *= 3.0
    assert findings("spikes", run_of({"train/loss": falling(seed=2), "train/box_loss": part})) == []


def test_reinforcement_learning_is_not_judged():
    x = falling()
    x[200] *= 5.0
    skipped = judged("spikes", run_of({"train/loss": x, "train/reward": falling()}))
    assert isinstance(skipped, Skipped)
    assert "reinforcement" in skipped.reason


def test_preference_optimisation_is_judged_although_it_logs_rewards():
    x = falling()
    x[200] *= 5.0
    assert len(findings("spikes", run_of({"train/loss": x, "train/rewards/chosen": falling()}))) == 1


def test_known_miss_a_jump_within_the_first_eight_points():
    x = falling()
    x[5] *= 3.0
    assert spikes(x) == []


def test_known_false_positive_a_batch_of_another_domain():
    """A few batches of code in a run over prose: deliberate, and a spike all the same."""
    x = falling()
    x[200:205] *= 1.3
    (found,) = spikes(x)
    assert found.severity is Severity.WARNING


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gauss", "t3", "laplace"])
def test_false_alarms_keep_to_the_budget_at_a_hundredfold_budget(kind):
    """With 0.1 false alarms allowed a run, 40 runs of flat noise may show 4 on average; 12 is 4 sigma more."""
    loud = 0
    for seed in range(40):
        x = 3.0 * (1.0 + 0.02 * noise(np.random.default_rng([3, seed]), 400, kind, 0.0))
        loud += len(spikes(x, false_alarms=0.1, min_rise=0.0))
    assert loud <= 12
