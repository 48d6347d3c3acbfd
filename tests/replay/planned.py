"""A run with an incident, its story, and the plan that is made of them."""

from __future__ import annotations

import numpy as np

from trainscope.core.finding import Finding, Severity
from trainscope.core.positions import ranges
from trainscope.core.run import Run, Series
from trainscope.diagnosis.signs import Cause, Explanation, Sign, Stage, Story
from trainscope.replay.checkpoints import Checkpoint
from trainscope.replay.config import Source
from trainscope.replay.plan import Places, plan

SOURCE = Source(id="0" * 12, name="smoke", path="smoke")
PLACES = Places([Checkpoint(100 * k, f"ckpt/step_{100 * k}.pt") for k in range(1, 10)])


def a_run(per_step: int = 1, steps: int = 600, **extra: np.ndarray) -> Run:
    step = np.arange(steps)
    values = {
        "train/loss": np.ones(steps),
        "batch_index": per_step * step,
        "batch/count": np.full(steps, per_step),
        "batch/token_entropy": np.ones(steps),
        "smoke/batch_hash": step + 16,
        "micro_batches": np.full(steps, per_step),
        **extra,
    }
    series = {name: Series(name, step, np.asarray(value, dtype=float)) for name, value in values.items()}
    return Run("smoke", "out/smoke", "recorded", series, {"smoke.training_loader": 0})


def a_story(cause: Cause | None, onset: int = 250, end: int = 256, detector: str = "spikes", **fields) -> Story:
    explanations = () if cause is None else (Explanation(cause, f"the {cause} broke it", 1.0, fixes=("Lower it.",)),)
    sign = Sign(onset, Stage.LOSS, "train/loss", "rose", detector=detector, end_step=end)
    return Story((sign,), onset, end, onset, explanations=explanations, **fields)


def bad(*steps: int) -> Finding:
    return Finding(
        "bad_batch", Severity.WARNING, "Bad batch", "bad", start_step=steps[0], end_step=steps[-1],
        evidence={"steps": ranges(steps)},
    )  # fmt: skip


def planned(story, findings=(), run=None, places=PLACES):
    stories = story if isinstance(story, tuple) else (story,)
    found = plan(run if run is not None else a_run(), findings, stories, places, source=SOURCE)
    assert found is not None
    return found
