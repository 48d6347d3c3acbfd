"""The signals of one seed's recordings, from step 0 on, as trainscope's own reader gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from divergences import RAMP, folder
from small_gpt import Kind

from trainscope.core.run import FloatArray, Run
from trainscope.readers import read_runs

STATISTICS = ("act_kurtosis", "attn_logit_max", "attn_entropy")


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """One training over n steps."""

    loss: FloatArray
    """(n,)"""
    layers: Mapping[str, FloatArray]
    """Statistic to (k, n) values, a row for each layer that has it."""
    shares: Mapping[str, FloatArray]
    """Router or addressor to the largest of its shares, (n,)."""


def load(cache: Path, kind: Kind, part: str, seed: int) -> Recording:
    """Return the recording of a part with the healthy steps before it."""
    start, rest = (_read(folder(cache, kind, name, seed)) for name in ("before", part))
    return Recording(
        np.concatenate([start.loss[:RAMP], rest.loss]),
        {name: np.concatenate([start.layers[name], rest.layers[name]], axis=1) for name in start.layers},
        {name: np.concatenate([start.shares[name], rest.shares[name]]) for name in start.shares},
    )


def _read(path: Path) -> Recording:
    run = read_runs(str(path))[0]
    loss = run.get("train/loss")
    blocks = () if run.shares is None else run.shares.blocks()
    return Recording(
        np.zeros(0) if loss is None else loss.value,
        {name: found for name in STATISTICS if (found := _rows(run, name)) is not None},
        {} if run.shares is None else {block: run.shares.shares(block)[1].max(axis=1) for block in blocks},
    )


def _rows(run: Run, statistic: str) -> FloatArray | None:
    if run.layers is None:
        return None
    rows = [run.layers.series(layer, statistic).value for layer in run.layers.layers()]
    length = max(map(len, rows), default=0)
    return np.stack([row for row in rows if len(row) == length]) if length > 1 else None
