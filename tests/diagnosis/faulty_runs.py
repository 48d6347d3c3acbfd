"""Runs with one fault each, put in at a known step."""

from __future__ import annotations

import numpy as np
import pytest

from trainscope.core.run import Run

from .story_runs import (
    AT,
    NAMES,
    STEPS,
    healthy,
    hurt,
    layers,
    run_of,
)

SEEDS = pytest.mark.parametrize("seed", range(8))


def bad_batch(seed: int, *, recorded: bool = True) -> Run:
    series, table = healthy(seed), layers(seed)
    hurt(series)
    series["batch/token_entropy"][AT : AT + 3] = 4.5
    for name in NAMES:
        table[name, "grad_l2_norm"][AT : AT + 3] *= 6.0
    if recorded:
        return run_of(series, table)
    return run_of({n: series[n] for n in ("train/loss", "train/grad_norm", "learning_rate")})


def rate_leap(seed: int) -> Run:
    series, table = healthy(seed), layers(seed)
    series["learning_rate"][AT : AT + 5] *= 30.0
    series["optimizer/update_norm"][AT : AT + 5] *= 30.0
    for name in NAMES:
        table[name, "update_l2_norm"][AT : AT + 5] *= 30.0
        table[name, "update_ratio"][AT : AT + 5] *= 30.0
    hurt(series, AT + 2, 8)
    return run_of(series, table)


def written_weights(seed: int) -> Run:
    """Something multiplies one tensor by 10 between two steps; a smoke run sees the update itself."""
    series, table = healthy(seed), layers(seed)
    table["b.fc.weight", "weight_l2_norm"][AT:] = 30.0
    hurt(series, AT, 10)
    for name in NAMES[3:]:
        table[name, "grad_l2_norm"][AT : AT + 10] *= 8.0
    return run_of(series, table)


def one_gradient(seed: int) -> Run:
    series, table = healthy(seed), layers(seed)
    table["a.out.weight", "grad_l2_norm"][AT : AT + 3] *= 300.0
    table["a.out.weight", "update_ratio"][AT : AT + 3] *= 6.0
    series["train/grad_norm"][AT : AT + 3] *= 100.0
    series["train/loss"][AT + 1 : AT + 6] *= 1.6
    return run_of(series, table)


def overflow(seed: int) -> Run:
    series, table = healthy(seed), layers(seed)
    series["train/grad_norm"][AT:] = np.inf
    series["train/loss"][AT + 1 :] = np.nan
    table["b.proj.weight", "grad_l2_norm"][AT:] = np.inf
    return run_of(series, table)


def lost_state(seed: int) -> Run:
    series = healthy(seed)
    series["optimizer/v_norm"][AT:] = 1e-4 * (1.0 + np.arange(STEPS - AT))
    return run_of(series, layers(seed))
