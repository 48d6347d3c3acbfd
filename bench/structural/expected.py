"""Expectations that a run meets and does not meet by construction: one in a hundred above or below what it has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trainscope.detectors import expectation

Said = Callable[[Path], list[tuple[Any, Any]]]
SLACK = 0.01


def lines(loss: np.ndarray, step: np.ndarray, sign: float) -> dict[str, str]:
    """Return an expectation of each kind; with `sign` 1 the run meets it, with -1 it does not."""
    middle = len(loss) // 2

    def at_most(value: float) -> str:
        return f"<= {value * (1.0 + sign * SLACK):.9g}"

    return {
        "at_step": f"train/loss at step {step[middle]} {at_most(loss[middle])}",
        "last": f"train/loss last {at_most(loss[-1])}",
        "mean": f"train/loss mean {at_most(loss.mean())}",
        "max": f"train/loss max {at_most(loss.max())}",
        "min": f"train/loss min >= {loss.min() * (1.0 - sign * SLACK):.9g}",
        "no_such_metric": f"{'train/loss' if sign > 0 else 'train/los'} last <= 1e9",
        "too_short": f"train/loss at step {step[-1] + (0 if sign > 0 else 1)} <= 1e9",
    }


def expectations(folder: Path, seeds: Sequence[int], said: Said) -> dict[str, dict[str, Any]]:
    """Judge healthy recordings by expectations that they miss, and by the same a little weaker."""
    each: dict[str, dict[str, int]] = {}
    flagged = runs = 0
    for seed in seeds:
        one = folder / "clipping" / f"usual-{seed}"
        if not one.exists():
            continue
        run = said(one)[0][0]
        loss = run.series["train/loss"]
        for sign in (-1.0, 1.0):
            for kind, line in lines(loss.value, loss.step, sign).items():
                spoke = bool(expectation.detect(run, expectation.Params((line,))))
                if sign > 0:
                    flagged, runs = flagged + spoke, runs + 1
                    continue
                entry = each.setdefault(kind, {"found": 0, "runs": 0})
                entry["found"], entry["runs"] = entry["found"] + spoke, entry["runs"] + 1
    total = sum(one["runs"] for one in each.values())
    faults = {"runs": total, "missed": total - sum(o["found"] for o in each.values()), "elsewhere": 0, "each": each}
    alike = {"flagged": flagged, "runs": runs, "kinds": len(each), "which": {}}
    none = {"flagged": 0, "runs": 0, "kinds": 0, "which": {}}
    return {"expectation": {"faults": faults, "alike": alike, "others": none}}
