"""plateau: nothing is learned, for the whole run or for a long stretch that later broke.

What it finds
    (a) *Never learned*: the training loss at the end is where it was at the start, over at least 150 steps.
    (b) *Stuck, then released*: a flat stretch of at least a quarter of the run, after which the loss
    falls by at least 15 % without a drop of the learning rate to explain it.
    (c) *Stuck after a restart*: training started over, as step_order finds it, and stays where the trial
    before it began, though that one had come down.
Algorithm
    Medians of about 40 blocks. Flat means that the Theil-Sen slope over the stretch gains less than
    `gain` of the level and the best block is within the noise of the first. (c) leaves out the first tenth
    of a trial, asks for half the length of the one before, and for 1.25 times the level that one reached.
    A loss that divergence finds rising at its end is not called flat too.
Parameters
    gain: largest gain that still counts as none, as a fraction of the level.
    most: the gain must be below this with 3 standard errors to spare, or nothing is said.
    release: smallest fall after a stuck stretch, as a fraction of the level.
    steps: shortest run judged.
False positives
    (b) on data with steps of its own; a staircase of two or more falls (epochs on repeated data) is info only.
    Fine-tuning of a model that already solves the task. If eval/loss falls, or rewards/accuracies
    is above that of a coin, the run is not called stuck.
Misses
    A run that converged too high: without a baseline that cannot be told from a run that is done.
Reference
    H. Theil 1950, P. K. Sen 1968 (slope).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainscope.core.finding import Finding, Severity
from trainscope.core.robust import block_medians, difference_sigma, mad_sigma, theil_sen
from trainscope.core.run import Run, Series
from trainscope.detectors.base import Detector, Skipped, number, training_losses
from trainscope.detectors.engine.events import Limits, Shape
from trainscope.detectors.engine.excursions import excursions, judged
from trainscope.detectors.engine.restarts import restart_steps
from trainscope.detectors.engine.rewards import prefers

FloatArray = NDArray[np.float64]
BLOCKS = 40


@dataclass(frozen=True, slots=True)
class Params:
    """What counts as flat."""

    gain: float = 0.015
    """As a fraction of the level: a run that gains less than 1.5 % from start to end learned nothing."""
    most: float = 0.06
    """As a fraction of the level: nothing is said unless the gain is surely (3 standard errors) below this."""
    release: float = 0.15
    """As a fraction of the level."""
    steps: int = 150
    """Steps (points, where the axis is not steps); a smoke run is too short to be stuck."""


@dataclass(frozen=True, slots=True)
class Flat:
    """A stretch without gain; indices into the finite points."""

    start: int
    end: int
    level: float
    gain: float
    why: str
    severity: Severity


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return at most one finding for each training loss."""
    losses = training_losses(run, adversarial=False)
    if isinstance(losses, Skipped):
        return losses
    findings = []
    reasons = []
    for loss in losses:
        finite = loss.finite()
        if len(finite) < 20:
            reasons.append(f"needs 20 points of {loss.name}, has {len(finite)}")
        elif run.x_axis == "step" and finite.step[-1] - finite.step[0] < params.steps:
            reasons.append(f"needs {params.steps} steps of {loss.name}")
        else:
            flat = _flat(run, finite, params)
            if flat is None or _diverges(loss):
                flat = _stuck_trial(run, finite, params)
            if flat is not None:
                findings.append(_finding(finite, flat))
    return findings if findings or not reasons else Skipped(reasons[0])


def _flat(run: Run, loss: Series, params: Params) -> Flat | None:
    size = max(1, len(loss) // BLOCKS)
    blocks = block_medians(loss.value, size)
    return _never_learned(run, loss, blocks, size, params) or _released(run, loss, blocks, size, params)


def _never_learned(run: Run, loss: Series, blocks: FloatArray, size: int, params: Params) -> Flat | None:
    n = len(loss)
    level = float(np.median(blocks))
    scale = max(abs(level), 1e-300)
    noise = difference_sigma(loss.value)
    few, many = max(3, min(size, 20)), max(3, n // 10)
    early = float(np.median(loss.value[:few]))
    start, points = min((early, few), (float(np.median(loss.value[:many])), many))
    end = float(np.median(blocks[-max(1, len(blocks) // 4) :]))
    enough = params.gain * scale
    gained = start - end
    best = start - float(blocks.min())
    at_once = float(np.median(loss.value[:3])) - end > max(0.1 * scale, 6.0 * noise)
    learned = (
        at_once
        or gained > enough + 4.0 * noise / np.sqrt(points)
        or best > enough + 4.0 * difference_sigma(blocks) + (4.0 * noise / np.sqrt(points))
    )
    error = 1.25 * noise * np.sqrt(1.0 / many + 4.0 / n)
    unsure = float(np.median(loss.value[:many])) - end + 3.0 * error > params.most * scale
    if learned or unsure or _eval_falls(run, params.gain) or prefers(run) or -gained > 0.12 * scale:
        return None
    return Flat(0, n - 1, level, max(gained / scale, 0.0), "from the first step to the last", Severity.WARNING)


def _diverges(loss: Series) -> bool:
    return any(event.shape is Shape.DIVERGENCE for event in excursions(judged(loss), Limits()))


def _stuck_trial(run: Run, loss: Series, params: Params) -> Flat | None:
    """Return the first trial after a restart that learns nothing where the one before it had learned."""
    if loss.name != "train/loss":
        return None
    edges = [0, *np.searchsorted(loss.step, restart_steps(run)).tolist(), len(loss)]
    for before, begin, end in zip(edges, edges[1:], edges[2:], strict=False):
        trial, earlier = loss.value[begin + (end - begin) // 10 : end], loss.value[before:begin]
        if len(trial) < max(BLOCKS, len(earlier) // 2):
            continue
        reached = float(np.median(earlier[-max(3, len(earlier) // 10) :]))
        blocks = block_medians(trial, max(1, len(trial) // BLOCKS))
        level = float(np.median(blocks))
        gained = float(np.median(blocks[:4]) - np.min(blocks)) - 4.0 * difference_sigma(blocks)
        if level > 1.25 * abs(reached) and gained < params.gain * level:
            why = (
                f"since training started over at step {int(loss.step[begin])}; before, it had come to {number(reached)}"
            )
            return Flat(end - len(trial), end - 1, level, max(gained / level, 0.0), why, Severity.WARNING)
    return None


def _eval_falls(run: Run, gain: float) -> bool:
    held_out = run.get("eval/loss")
    if held_out is None:
        return False
    value = held_out.finite().value
    if len(value) < 3:
        return False
    return bool(value[0] - np.median(value[-max(1, len(value) // 4) :]) > 2 * gain * abs(value[0]))


def _released(run: Run, loss: Series, blocks: FloatArray, size: int, params: Params) -> Flat | None:
    n = len(blocks)
    if n < 16:
        return None
    noise = max(difference_sigma(blocks), 1e-4 * abs(float(np.median(blocks))))
    shortest = n // 4
    best: tuple[int, int] | None = None
    for start in range(1, n - shortest - 2):
        level = float(np.median(blocks[start : start + shortest]))
        within = np.abs(blocks[start:] - level) <= max(3.0 * noise, 0.5 * params.gain * abs(level))
        length = int(np.argmin(within)) if not within.all() else len(within)
        if length >= shortest and start + length < n - 2 and (best is None or length > best[1] - best[0]):
            best = (start, start + length)
    if best is None:
        return None
    start, end = best
    stretch = blocks[start:end]
    if loss.step[min(len(loss) - 1, end * size)] - loss.step[start * size] < 0.25 * (loss.step[-1] - loss.step[0]):
        return None
    level = float(np.median(stretch))
    slope = theil_sen(np.arange(len(stretch), dtype=np.float64), stretch)
    spread = max(noise, mad_sigma(stretch))
    fall = (level - float(np.median(blocks[-max(2, n // 20) :]))) / max(abs(level), 1e-300)
    if -slope * len(stretch) > params.gain * abs(level) or fall < params.release or fall * abs(level) < 6.0 * spread:
        return None
    at = min(len(loss) - 1, end * size)
    if _learning_rate_drops(run, int(loss.step[max(0, at - 2 * size)]), int(loss.step[min(len(loss) - 1, at + size)])):
        return None
    abrupt = float(blocks[end]) < level - 0.6 * fall * level
    unsure = _is_staircase(blocks, noise) or (run.get("learning_rate") is None and abrupt)
    why = f"then fell by {fall:.0%} in the rest of the run"
    return Flat(start * size, at, level, fall, why, Severity.INFO if unsure else Severity.WARNING)


def _is_staircase(blocks: FloatArray, noise: float) -> bool:
    """Tell whether the loss falls in two or more isolated steps, as it does from epoch to epoch on repeated data."""
    fall = -np.diff(blocks)
    large = np.flatnonzero(fall[1:-2] > np.maximum(6.0 * noise, 0.04 * np.abs(blocks[1:-3]))) + 1
    return int(sum(max(fall[i - 1], fall[i + 1], fall[i + 2]) < 0.3 * fall[i] for i in large)) >= 2


def _learning_rate_drops(run: Run, begin: int, end: int) -> bool:
    rate = run.get("learning_rate")
    if rate is None:
        return False
    before = rate.value[(rate.step <= begin)]
    after = rate.value[(rate.step >= end)]
    return bool(len(before) and len(after) and after[0] < 0.7 * before[-1])


def _finding(loss: Series, flat: Flat) -> Finding:
    start, end = int(loss.step[flat.start]), int(loss.step[flat.end])
    return Finding(
        detector="plateau",
        severity=flat.severity,
        title="Loss does not fall",
        message=f"{loss.name} stayed at {number(flat.level)} from step {start} to {end}, {flat.why}.",
        metric=loss.name,
        start_step=start,
        end_step=end,
        peak_step=start,
        evidence={"level": flat.level, "gain": flat.gain},
        fixes=(
            "Check that the learning rate is not 0 and that the parameters are in the optimizer.",
            "Check labels and loss mask: a loss at the entropy of the label frequencies means the input is ignored.",
            "Overfit one batch: if that fails too, the model or the loss is broken.",
        ),
    )


DETECTOR = Detector("plateau", "Loss does not fall", ("train/loss",), Params(), detect)
