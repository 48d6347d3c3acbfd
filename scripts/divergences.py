"""Record a healthy training of the small GPT, and two that leave it where its learning rate begins to climb.

All three are one training for 250 steps. Then the control goes on at the same rate until step 650, and the others
multiply theirs by 1.2 (as in the claims) or by 1.1 at each step, until the loss is ten times what it was. Each is
recorded by trainscope's own recorder; finished recordings are kept and serve every script.
"""

from __future__ import annotations

import copy
import math
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Any

import torch
from small_gpt import TRAIN, Kind, gpt, losses, windows
from torch import nn

from trainscope import TrainScope, TrainScopeConfig

RAMP, END, LONGEST = 250, 650, 150
"""Steps until the climb begins, of the control, and of the longest climb. Until then a small GPT learns its first
things (its attention sharpens, kurtosis grows), and the detectors fill their windows of 200 and 150 steps."""
CONTROL = "control"
CLIMBS: Mapping[str, float] = MappingProxyType({"fast": 1.2, "slow": 1.1})
"""By how much the learning rate is multiplied at each step."""
RATE, WARM_UP, ROWS, CLIP = 3e-3, 40, 8, 1.0
BEFORE, IN_A_ROW = 30, 3
GONE = 10.0
"""Times the usual loss: the claims' own definition of divergence."""


def divergence(loss: Sequence[float], times: float) -> int | None:
    """Return the first step of the climb of three in a row whose loss is so high, or of one that is not finite.

    Parameters
    ----------
    loss : sequence of float
        One a step, from step 0 on.
    times : float
        Of the median of the 30 steps before the climb.

    Returns
    -------
    int or None
        None if there is no such step.
    """
    level = times * median(loss[RAMP - BEFORE : RAMP])
    for step in range(RAMP, len(loss)):
        row = loss[step : step + IN_A_ROW]
        if not math.isfinite(row[0]) or (len(row) == IN_A_ROW and min(row) >= level):
            return step
    return None


def folder(cache: Path, kind: Kind, part: str, seed: int) -> Path:
    """Return where a recording is kept."""
    return cache / f"{kind}-{part}-{seed}"


def record(kind: Kind, seed: int, cache: Path) -> None:
    """Train and record all three, unless the cache has them."""
    done = cache / f"{kind}-{seed}.done"
    if done.is_file():
        return
    torch.manual_seed(seed)
    model = gpt(kind)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, fused=True)
    generator = torch.Generator().manual_seed(seed)
    loss = _part(model, optimizer, generator, 0, RAMP, 1.0, _config(cache, kind, "before", seed), [])
    state = copy.deepcopy((model.state_dict(), optimizer.state_dict())), generator.get_state()
    for part, growth in ((CONTROL, 1.0), *CLIMBS.items()):
        (weights, moments), random = copy.deepcopy(state[0]), state[1]
        model.load_state_dict(weights)
        optimizer.load_state_dict(moments)
        generator.set_state(random)
        last = END if part == CONTROL else RAMP + LONGEST
        _part(model, optimizer, generator, RAMP, last, growth, _config(cache, kind, part, seed), loss)
    done.touch()


def _config(cache: Path, kind: Kind, part: str, seed: int) -> TrainScopeConfig:
    where = folder(cache, kind, part, seed)
    shutil.rmtree(where, ignore_errors=True)
    # Shares are recorded at every step in any case; layers cost time, and only the plain model's are looked at.
    layers: dict[str, Any] = {"activation_metrics_every_n_steps": 1}
    if kind == "routed":
        layers = {"trace_every_n_steps": END}
    return TrainScopeConfig(
        run_dir=where.parent,
        run_name=where.name,
        full_resolution_window=END,
        histogram_every_n_steps=END,
        track_memory=False,
        **layers,
    )


def _part(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    generator: torch.Generator,
    first: int,
    last: int,
    growth: float,
    config: TrainScopeConfig,
    before: Sequence[float],
) -> list[float]:
    """Train from a step to another, or until the loss is gone; return the losses from step 0 on."""
    seen = [*before]
    with TrainScope(model, optimizer, config) as scope:
        for step in range(first, last):
            climb = growth ** (step - RAMP) if step > RAMP else 1.0
            optimizer.param_groups[0]["lr"] = RATE * min(1.0, (step + 1) / WARM_UP) * climb
            loss, objective = losses(model, *windows(TRAIN, ROWS, generator))
            optimizer.zero_grad()
            objective.backward()
            nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            seen.append(loss.item())
            scope.step(seen[-1])
            if growth > 1.0 and divergence(seen, GONE) is not None:
                break
            optimizer.step()
    return seen
