from __future__ import annotations

import numpy as np
import pytest

from trainscope.core.finding import Severity
from trainscope.detectors.base import Skipped, number

from .runs import ROWS, at, falling, findings, judged, level, only, run_of


def turned(rise: float, begin: int = 280, **noise: object) -> np.ndarray:
    x = falling(**noise)
    x[begin:] *= np.linspace(1.0, 1.0 + rise, ROWS - begin)
    return x


@pytest.mark.parametrize(
    ("rise", "severity"), [(0.25, Severity.WARNING), (0.4, Severity.WARNING), (1.0, Severity.ERROR)]
)
def test_a_slow_rise_is_a_warning_and_an_error_from_half_the_level_on(rise, severity):
    found = only("divergence", run_of({"train/loss": turned(rise)}))
    assert found.severity is severity
    assert at(280) - 100 <= found.start_step <= at(345)
    assert found.end_step == at(399)
    assert 0.5 * rise <= found.evidence["rise"] <= 1.1 * rise


def test_medians_are_called_levels_and_not_values():
    x = turned(1.0)
    x[-1] *= 1.2
    found = only("divergence", run_of({"train/loss": x}))
    best, last = found.evidence["best"], found.evidence["last"]
    assert found.message == (
        f"train/loss was down to a level of {number(best)}, rises from step {found.start_step} on, and its last "
        f"points, up to step {at(399)}, are at a level of {number(last)} ({last / best - 1:+.0%})."
    )
    assert last < x[-1]
    assert best > x.min()


def test_the_border_between_warning_and_error_is_a_parameter():
    run = run_of({"train/loss": turned(0.3)})
    assert only("divergence", run, error_rise=0.1).severity is Severity.ERROR
    assert only("divergence", run, error_rise=0.9).severity is Severity.WARNING


def test_a_rise_of_a_few_percent_is_none_and_may_be_asked_for():
    run = run_of({"train/loss": turned(0.09)})
    assert findings("divergence", run) == []
    assert len(findings("divergence", run, end_rise=0.05)) == 1


@pytest.mark.parametrize("tail", [3, 5, 20])
def test_a_blow_up_in_the_last_points_is_an_error(tail):
    x = falling()
    x[-tail:] *= np.geomspace(1.6, 30.0, tail)
    found = only("divergence", run_of({"train/loss": x}))
    assert found.severity is Severity.ERROR
    assert abs(found.start_step - at(ROWS - tail)) <= 30
    assert found.peak_step == at(399)


def test_a_last_point_above_three_times_the_level_is_a_divergence_and_a_smaller_one_a_spike():
    for factor, expected in ((5.0, "divergence"), (2.0, "spikes")):
        x = falling()
        x[-1] *= factor
        run = run_of({"train/loss": x})
        other = {"divergence": "spikes", "spikes": "divergence"}[expected]
        assert only(expected, run).start_step == at(399)
        assert findings(other, run) == []


def test_a_hill_that_is_behind_the_run_is_no_divergence():
    x = falling()
    x[150:250] *= 1.0 + np.sin(np.linspace(0.0, np.pi, 100))
    assert findings("divergence", run_of({"train/loss": x})) == []


@pytest.mark.parametrize("seed", range(8))
def test_a_run_that_only_got_noisier_has_not_diverged(seed):
    rng = np.random.default_rng(seed)
    x = falling(seed=seed) * (1.0 + np.linspace(0.0, 0.08, ROWS) * rng.normal(size=ROWS))
    assert findings("divergence", run_of({"train/loss": x})) == []


def test_a_run_that_reads_nan_in_the_end_is_judged_by_its_finite_points():
    x = turned(1.0)
    x[390:] = np.nan
    assert only("divergence", run_of({"train/loss": x})).end_step == at(389)


def test_adversaries_must_double_and_not_at_the_beginning():
    d = 0.6 + 0.05 * np.random.default_rng(0).normal(size=ROWS)
    for begin, factor, expected in ((200, 1.5, 0), (40, 3.0, 0), (200, 4.0, 1)):
        g = 1.0 + 0.02 * np.random.default_rng(1).normal(size=ROWS)
        g[begin:] *= np.linspace(1.0, factor, ROWS - begin)
        assert len(findings("divergence", run_of({"loss_G": g, "loss_D": d}))) == expected, (begin, factor)


def test_the_sum_of_what_several_optimizers_follow_is_judged_like_adversaries():
    generator = {"smoke/objective_0": np.ones(ROWS), "smoke/objective_1": np.ones(ROWS)}
    assert len(findings("divergence", run_of({"train/loss": turned(0.3)}))) == 1
    assert findings("divergence", run_of({"train/loss": turned(0.3), **generator})) == []
    for detector in ("loss_shift", "plateau"):
        judgement = judged(detector, run_of({"train/loss": turned(0.3), **generator}))
        assert isinstance(judgement, Skipped)
        assert judgement.reason == "the sum of what several optimizers follow need not fall"


def test_a_run_that_was_started_over_is_left_to_step_order():
    rate = 3e-4 * np.minimum(1.0, np.arange(ROWS) / 20.0)
    loss = np.concatenate((falling(), 2.2 * level(seed=1)))
    run = run_of({"train/loss": loss, "learning_rate": np.concatenate((rate, rate))})
    assert findings("divergence", run) == []
    assert [f.title for f in findings("step_order", run)] == ["Training started over"]


def test_reinforcement_learning_is_not_judged():
    assert isinstance(judged("divergence", run_of({"train/loss": turned(1.0), "train/reward": falling()})), Skipped)


def test_known_false_positive_an_annealed_term_raises_the_loss_on_purpose():
    """The weight of the KL term of a VAE goes from 0 to 1 over the second half."""
    kl = 1.5 * np.clip((np.arange(ROWS) - 200) / 150.0, 0.0, 1.0)
    found = only("divergence", run_of({"train/loss": falling() + kl}))
    assert found.severity is Severity.ERROR


def above_its_start(rise: float, share: float = 0.8, seed: int = 0) -> np.ndarray:
    """Return a loss at chance that rises by `rise` early on and is back for the rest of the run."""
    k = np.arange(ROWS) / ROWS
    up = np.clip(k / 0.1, 0.0, 1.0) * np.clip((share - k) / 0.15, 0.0, 1.0)
    noise = 0.003 * np.random.default_rng(seed).normal(size=ROWS)
    return np.asarray(6.9 * (1.0 + rise * up + noise))


def test_a_loss_that_stands_above_its_start_for_most_of_the_run_is_found_though_it_comes_back():
    found = only("divergence", run_of({"train/loss": above_its_start(0.05)}))
    assert found.severity is Severity.WARNING
    assert found.start_step <= at(60)
    assert at(250) <= found.end_step <= at(330)
    assert found.evidence["first"] == pytest.approx(6.9, rel=0.01)
    assert "training made it worse" in found.message


@pytest.mark.parametrize(("rise", "share"), [(0.02, 0.8), (0.05, 0.4)])
def test_a_small_or_short_stand_above_the_start_is_left_out(rise, share):
    assert findings("divergence", run_of({"train/loss": above_its_start(rise, share)})) == []


def test_a_short_run_that_begins_low_is_left_alone():
    x = np.concatenate(([1.6, 1.6, 1.6], 2.0 + 0.02 * np.random.default_rng(0).normal(size=60)))
    assert "above it" not in "".join(f.message for f in findings("divergence", run_of({"train/loss": x})))


@pytest.mark.parametrize("seed", range(10))
def test_noise_around_the_first_values_is_no_stand_above_them(seed):
    x = 2.0 + 0.4 * np.random.default_rng(seed).standard_t(3, size=ROWS)
    x[:3] = 1.6
    assert findings("divergence", run_of({"train/loss": x})) == []


def traded(own: float, other: float) -> dict[str, np.ndarray]:
    """A game whose players' losses are at a level each, and at that level times a factor from row 160 on."""
    rng = np.random.default_rng(5)
    metrics = {"Gen Loss": 0.7 + 0.02 * rng.standard_normal(ROWS), "Disc Loss": 1.4 + 0.02 * rng.standard_normal(ROWS)}
    metrics["Gen Loss"][160:] *= np.linspace(1.0, own, ROWS - 160)
    metrics["Disc Loss"][160:] *= np.linspace(1.0, other, ROWS - 160)
    return metrics


def test_the_loss_of_a_player_that_rises_as_the_others_falls_is_the_game():
    assert findings("divergence", run_of(traded(4.0, 0.4))) == []


def test_both_players_losses_that_rise_are_a_divergence():
    found = findings("divergence", run_of(traded(4.0, 4.0)))
    assert {f.metric for f in found} == {"Gen Loss", "Disc Loss"}


@pytest.mark.parametrize("n", [30, 60, 200])
def test_a_loss_that_the_first_update_blows_up_is_told_however_short_the_run(n):
    """A low-rank adapter with a scale of 1e5, trained with Adam: 4.2 at first, then 2e5 and slowly falling."""
    loss = np.concatenate(([4.18], 4e5 * np.exp(-np.arange(n - 1) / 30.0 + 0.1 * level(n - 1, sd=1.0))))
    found = only("divergence", run_of({"train/loss": loss}))
    assert (found.severity, found.title) == (Severity.WARNING, "Loss rises above its start")
    assert found.start_step <= at(3)


def test_a_short_run_that_wanders_above_a_low_start_is_silent():
    loss = np.concatenate(([1.4], 2.0 + 0.1 * np.random.default_rng(0).normal(size=59)))
    assert findings("divergence", run_of({"train/loss": loss})) == []
