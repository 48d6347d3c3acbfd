"""Means since the beginning of an epoch, as Keras, MXNet and many loops print them."""

from __future__ import annotations

import numpy as np

from .logs import kinds, points, run_of_text


def test_running_means_of_an_epoch_are_one_value_an_epoch() -> None:
    text, wanted = "", []
    noise = np.random.default_rng(0).normal(0, 0.3, (6, 40))
    for epoch in range(6):
        values = 2 / (epoch + 1) + noise[epoch]
        for i in range(40):
            text += f"Epoch {epoch} iteration {i + 1:04d}/0040: training loss {values[: i + 1].mean():.3f}\n"
        wanted.append((epoch * 40 + 40, float(f"{values.mean():.3f}")))
    run = run_of_text(text)
    assert points(run, "train/loss") == wanted
    assert "running_mean" in kinds(run)


def test_losses_of_single_batches_are_no_running_means() -> None:
    noise = np.random.default_rng(0).normal(0, 0.3, (6, 40))
    text = "".join(f"Epoch {e} iteration {i + 1}/40: loss {3 + noise[e, i]:.3f}\n" for e in range(6) for i in range(40))
    run = run_of_text(text)
    assert len(run.series["train/loss"]) == 240
    assert "running_mean" not in kinds(run)
