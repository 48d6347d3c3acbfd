"""A loss of preference optimisation follows its margins: what that excuses, and what it must not."""

from __future__ import annotations

import numpy as np
import pytest
from policies import preferences

from trainscope.core.finding import Severity

from ..runs import ROWS, at, findings, only, run_of


def paired(seed: int = 0, n: int = ROWS, pairs: int = 2, spread: float = 0.3) -> np.ndarray:
    """Return (n, pairs) margins around 1."""
    return 1.0 + spread * np.random.default_rng(seed).normal(size=(n, pairs))


def logged(margins: np.ndarray, *, with_margins: bool = True) -> dict[str, np.ndarray]:
    log = {
        "train/loss": np.log1p(np.exp(-margins)).mean(axis=1),
        "rewards/accuracies": (margins > 0.0).mean(axis=1),
        "rewards/chosen": margins.mean(axis=1),
    }
    return {**log, "rewards/margins": margins.mean(axis=1)} if with_margins else log


def test_one_pair_ranked_far_the_wrong_way_is_a_hard_pair_and_no_spike():
    margins = paired()
    margins[200, 0] = -8.0
    found = only("spikes", run_of(logged(margins)))
    assert (found.severity, found.title, found.start_step) == (Severity.INFO, "Hard batches", at(200))
    assert "pairs that the policy ranks the wrong way" in found.message


def test_without_margins_in_the_log_it_is_a_spike():
    margins = paired()
    margins[200, 0] = -8.0
    found = only("spikes", run_of(logged(margins, with_margins=False)))
    assert (found.severity, found.peak_step) == (Severity.WARNING, at(200))


@pytest.mark.parametrize("points", [2, 5, 12])
def test_a_policy_that_is_damaged_for_more_than_one_step_is_a_spike(points):
    margins = paired()
    margins[200 : 200 + points] -= 6.0
    found = only("spikes", run_of(logged(margins)))
    assert (found.severity, found.start_step) == (Severity.WARNING, at(200))


def test_a_loss_that_jumps_without_its_margin_is_a_spike():
    log = logged(paired())
    log["train/loss"][200] += 4.0
    assert only("spikes", run_of(log)).severity is Severity.WARNING


def grown(seed: int) -> dict[str, np.ndarray]:
    """Return a log whose margins jump about five times as much from the index 500 on, so that fewer are above 0."""
    rng = np.random.default_rng(seed)
    return logged(0.5 + np.repeat([0.2, 1.0], 500)[:, None] * rng.normal(size=(1000, 4)))


@pytest.mark.parametrize("seed", range(10))
def test_noise_that_the_margins_have_as_well_is_no_finding(seed):
    log = grown(seed)
    log["rewards/accuracies"][:] = 0.8
    assert findings("oscillation", run_of(log)) == []
    alone = {name: v for name, v in log.items() if name != "rewards/margins"}
    assert only("oscillation", run_of(alone)).title == "Noise of the loss grew"


@pytest.mark.parametrize("seed", range(10))
def test_noise_that_comes_with_fewer_pairs_ranked_right_is_told(seed):
    assert only("oscillation", run_of(grown(seed))).title == "Noise of the loss grew"


def test_noise_that_the_margins_do_not_have_is_told():
    log = grown(0)
    log["rewards/margins"] = 0.5 + 0.1 * np.random.default_rng(1).normal(size=1000)
    assert only("oscillation", run_of(log)).title == "Noise of the loss grew"


def test_sixty_healthy_runs_of_one_to_thirty_two_pairs_get_no_warning():
    loud = []
    for seed in range(60):
        rng = np.random.default_rng([5, seed])
        run = run_of(preferences(rng, int(rng.integers(60, 1200)), float(rng.uniform(0.2, 2.0)), 2 ** (seed % 6)))
        for detector in ("spikes", "oscillation"):
            loud += [(seed, f.message) for f in findings(detector, run) if f.severity >= Severity.WARNING]
    assert not loud
