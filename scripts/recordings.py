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
    layers: Mapping[str, Mapping[str, FloatArray]]
    """Statistic to layer to (n,) values."""
    shares: Mapping[str, FloatArray]
    """Router or addressor to the largest of its shares, (n,)."""


def load(cache: Path, kind: Kind, part: str, seed: int) -> Recording:
    """Return the recording of a part with the healthy steps before it."""
    start, rest = (read(folder(cache, kind, name, seed)) for name in ("before", part))
    return Recording(
        np.concatenate([start.loss[:RAMP], rest.loss]),
        {name: _joined(layers, rest.layers[name]) for name, layers in start.layers.items()},
        _joined(start.shares, rest.shares),
    )


def _joined(start: Mapping[str, FloatArray], rest: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    return {name: np.concatenate([values, rest[name]]) for name, values in start.items()}


def read(path: Path) -> Recording:
    """Return one recording as it is."""
    run = read_runs(str(path))[0]
    loss = run.get("train/loss")
    blocks = () if run.shares is None else run.shares.blocks()
    return Recording(
        np.zeros(0) if loss is None else loss.value,
        {name: found for name in STATISTICS if (found := _layers(run, name))},
        {} if run.shares is None else {block: run.shares.shares(block)[1].max(axis=1) for block in blocks},
    )


def _layers(run: Run, statistic: str) -> dict[str, FloatArray]:
    if run.layers is None:
        return {}
    found = {layer: run.layers.series(layer, statistic).value for layer in run.layers.layers()}
    most = max(map(len, found.values()), default=0)
    # An expert that got no token at some step has fewer.
    return {layer: values for layer, values in found.items() if len(values) == most > 1}
