"""Logs with a plain fault, whose case files several tests ask for."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from trainscope.core.settings import Settings

SETTINGS = Settings()


def write(
    folder: Path, name: str, *, fault: str = "", steps: int = 300, config: dict | None = None, seed: int = 0
) -> Path:
    """Write a log with a plain fault at step 200, in a folder of its own with its configuration."""
    rng, steps = np.random.default_rng(seed), 300
    loss = 2 + 2 * np.exp(-np.arange(steps) / 40) + 0.02 * rng.standard_normal(steps)
    rate = 1e-3 * (1 + np.cos(np.pi * np.arange(steps) / steps)) / 2 + 1e-4
    norm = np.exp(0.05 * rng.standard_normal(steps))
    if fault == "spike":
        norm[199:203] *= 20
        loss[200:203] += 3
    if fault == "rate":
        rate[198:204] *= 30
        loss[200:] += 2
    home = folder / name
    home.mkdir(parents=True)
    lines = [
        json.dumps({"step": i, "loss": float(loss[i]), "learning_rate": float(rate[i]), "grad_norm": float(norm[i])})
        for i in range(steps)
    ]
    (home / "log.jsonl").write_text("\n".join(lines), encoding="utf-8")
    if config is not None:
        (home / "training_args.json").write_text(json.dumps(config), encoding="utf-8")
    return home / "log.jsonl"
