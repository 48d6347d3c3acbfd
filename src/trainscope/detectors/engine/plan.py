"""The learning rate that the settings beside a log plan, and how far the log is from it.

Settings are those of Hugging Face's ``TrainingArguments``, wherever they come from: ``training_args.bin`` of a
checkpoint, ``args.json``, a tracker's config.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from trainscope.core.run import FloatArray, Run, Scalar, Series

SHAPES = {"linear": "linear", "cosine": "cosine", "constant": "constant", "constant_with_warmup": "constant"}
"""``lr_scheduler_type`` to the shape after the warm-up; the others have parameters of their own and are not judged."""
FEWEST = 5
"""Logged points that must be off."""
SHARE = 0.1
"""Of the logged points that must be off: skipped steps of a loss scale move a schedule by a few."""
FITS = 0.02
"""Share of the points that an explanation may leave off."""
MOST_FACTOR = 64


@dataclass(frozen=True, slots=True)
class Plan:
    """A linear warm-up and a decay to 0, in optimizer steps."""

    shape: str
    warmup: float
    total: float
    """0 for a constant rate whose end nobody declared."""
    peak: float

    def at(self, step: FloatArray) -> FloatArray:
        """Return the planned learning rate of each step."""
        return curve(step, self.warmup, self.total, self.peak, self.shape)


def curve(step: FloatArray, warm: float, total: float, peak: float, shape: str) -> FloatArray:
    """Return the learning rates of a linear warm-up and a decay to 0.

    Parameters
    ----------
    step : (n,)
        Optimizer steps from 0.
    warm, total : float
        Lengths in optimizer steps.
    """
    place = np.clip((step - warm) / max(total - warm, 1.0), 0.0, 1.0)
    decay = {"constant": np.ones_like(place), "linear": 1.0 - place, "cosine": 0.5 * (1.0 + np.cos(np.pi * place))}
    rate: FloatArray = peak * np.where(step < warm, step / max(warm, 1.0), decay[shape])
    return rate


def planned(run: Run) -> Plan | None:
    """Return what the settings plan, None where they do not say it whole."""
    said = {key.rpartition(".")[2]: value for key, value in reversed(list(run.config.items()))}
    shape = SHAPES.get(str(said.get("lr_scheduler_type")))
    peak, total = _number(said.get("learning_rate")), _number(said.get("max_steps")) or 0.0
    kwargs = said.get("lr_scheduler_kwargs")
    if shape is None or peak is None or peak <= 0.0 or kwargs not in (None, "", "{}"):
        return None
    if any(key.startswith("lr_scheduler_kwargs.") or ".lr_scheduler_kwargs." in key for key in run.config):
        return None
    warmup = _number(said.get("warmup_steps")) or 0.0
    ratio = _number(said.get("warmup_ratio")) or 0.0
    if 0.0 < warmup < 1.0:  # newer versions take a share here too
        warmup, ratio = 0.0, warmup
    if total <= 0.0 and (shape != "constant" or ratio > 0.0):
        return None
    if not warmup and ratio > 0.0:
        warmup = float(ceil(total * ratio))
    if shape == "constant" and said.get("lr_scheduler_type") == "constant":
        warmup = 0.0
    return Plan(shape, warmup, max(total, 0.0), peak)


def _number(value: Scalar) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def off(rate: Series, plan: Plan, deviation: float) -> NDArray[np.bool_]:
    """Return (n,) which points lie off the plan; a schedule may count from 0 or 1, and be logged before its step."""
    step = rate.step.astype(np.float64)
    away = np.full(len(rate), np.inf)
    for shift in (-1.0, 0.0, 1.0):
        wanted = plan.at(np.maximum(step + shift, 0.0))
        away = np.minimum(away, np.abs(rate.value - wanted) - deviation * np.maximum(wanted, 0.02 * plan.peak))
    return np.asarray(away > 0.0)


def explained(run: Run, rate: Series, plan: Plan, deviation: float) -> str | None:
    """Return in words which usual mistake makes the learning rate what it is, None if it is none of them."""
    for words, other in _mistakes(run, plan):
        # What a schedule does after its end differs; up to there it must fit.
        ends = rate.step <= other.total if other.total and other.shape != "constant" else np.ones(len(rate), bool)
        if int(ends.sum()) >= FEWEST and off(rate, other, deviation)[ends].mean() <= FITS:
            return words
    low = rate.value <= 1e-3 * plan.peak
    if low[-1] and not low.all():
        end = float(rate.step[len(low) - int(np.argmin(low[::-1]))])
        if 0.0 < end < 0.95 * plan.total:
            return f"it is at its end from step {end:.0f} on"
    return None


def _mistakes(run: Run, plan: Plan) -> Iterator[tuple[str, Plan]]:
    yield "it stays at its peak: the scheduler never steps", Plan("constant", 0.0, 0.0, plan.peak)
    yield "there is no warm-up", Plan(plan.shape, 0.0, plan.total, plan.peak)
    named = _factors(run)
    for k in [*named, *(k for k in range(2, MOST_FACTOR + 1) if k not in named)]:
        what = named.get(k, "")
        fast = Plan(plan.shape, plan.warmup / k, plan.total / k, plan.peak)
        yield f"the schedule runs {k} times as fast{what}", fast
        yield (
            f"the schedule runs {k} times as slowly{what}",
            Plan(plan.shape, plan.warmup * k, plan.total * k, plan.peak),
        )


def _factors(run: Run) -> dict[int, str]:
    said = {key.rpartition(".")[2]: value for key, value in run.config.items()}
    accumulate = _number(said.get("gradient_accumulation_steps")) or 1.0
    world = _number(said.get("world_size")) or _number(said.get("n_gpu")) or 1.0
    epochs = _number(said.get("num_train_epochs")) or 1.0
    named = (
        (epochs, ", the number of epochs"),
        (accumulate * world, ", the number of micro-batches of a step times processes"),
        (world, ", the number of processes"),
        (accumulate, ", the number of micro-batches of a step"),
    )
    return {round(k): words for k, words in named if 1 < k <= MOST_FACTOR and k == round(k)}
