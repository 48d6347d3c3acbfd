"""overfitting: the held-out loss has turned and rises while the training loss does not.

What it finds
    An evaluation loss whose level at the end of the run is clearly above its best.
Algorithm
    The best level is the smallest three-point median; the last level the median of the last three
    evaluations. The rise must be `rise` of the best and 5 standard errors of the evaluation noise, which
    is measured from second differences, and most of the evaluations after the best must lie above it.
    If the training loss rises with it, since the best evaluation or since the one before the steepest rise, the
    run diverges or never came back from a spike: `divergence` and its kin say so instead.
    A rise of `mild` to `rise` that is as sure is an information: it decides which checkpoint to take.
Parameters
    rise: smallest rise over the best, as a fraction.
    mild: smallest rise that is told as an information, as a fraction: the last checkpoint is not the best.
    sigmas: smallest rise in standard errors of the noise.
False positives
    A held-out set of another domain during domain adaptation.
Misses
    Fewer than 2 evaluations after the best, and a gap to the training loss that is wide but stable.
Reference
    L. Prechelt, "Early Stopping - but when?", 1998. The noise test replaces its fixed percentages, which
    fire on every bump of a noisy evaluation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainscope.core.finding import Finding, Severity
from trainscope.core.metrics import Kind, is_reinforcement
from trainscope.core.robust import difference_sigma
from trainscope.core.run import Run, Series
from trainscope.detectors.base import Detector, Skipped, by_kind, number

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Params:
    """How far above its best the held-out loss must be."""

    rise: float = 0.08
    """As a fraction of the best: less is no reason to stop a run."""
    mild: float = 0.01
    """As a fraction of the best: less rarely decides which checkpoint is taken."""
    sigmas: float = 5.0
    """Standard errors of the evaluation noise."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return one finding for the evaluation loss that overfits (the main one, if there are several)."""
    main = run.get("eval/loss")
    held_out = [main] if main is not None else by_kind(run, Kind.EVAL_LOSS)
    if not held_out or is_reinforcement(tuple(run.series)):
        return Skipped("needs eval/loss")
    long_enough = [s.finite() for s in held_out if len(s.finite()) >= 5]
    if not long_enough:
        return Skipped("needs 5 evaluations")
    turned = [(loss, turn) for loss in long_enough if (turn := _turn(loss.value, params)) is not None]
    turned = [(loss, turn) for loss, turn in turned if not _rises_with_training(run, loss, turn[0])]
    if not turned:
        return []
    loss, turn = max(turned, key=lambda pair: (pair[1][2] - pair[1][1]) / abs(pair[1][1]))
    grave = (turn[2] - turn[1]) >= params.rise * abs(turn[1])
    return [_finding(run, loss, *turn, others=len(turned) - 1, grave=grave)]


def _turn(value: FloatArray, params: Params) -> tuple[int, float, float, float] | None:
    """Return (index of the best, best level, last level, standard errors), or None."""
    n = len(value)
    padded = np.concatenate((value[:1], value, value[-1:]))
    smooth = np.median(np.lib.stride_tricks.sliding_window_view(padded, 3), axis=1)
    best = int(np.argmin(smooth[:-1]))
    level, last = float(smooth[best]), float(np.median(value[-3:]))
    after = value[best + 1 :]
    if len(after) < 3:
        return None
    noise = max(difference_sigma(value[max(0, best - n // 2) :]), 1e-4 * abs(level))
    rise = last - level
    if rise < min(params.rise, params.mild) * abs(level) or rise <= 0:
        return None
    least = params.rise if rise >= params.rise * abs(level) else params.mild
    enough = min(0.3 * rise, max(least * abs(level), 3.0 * noise))
    late = after[len(after) // 2 :]
    sigmas = rise / (noise * np.sqrt(2.0 / 3.0))
    if sigmas < params.sigmas or np.mean(late > level + enough) < 0.8:
        return None
    return best, level, last, float(sigmas)


def _rises_with_training(run: Run, held_out: Series, best: int) -> bool:
    steepest = best + int(np.argmax(np.diff(held_out.value[best:])))
    return any(_train_rises(run, int(held_out.step[i])) for i in (best, steepest))


def _train_rises(run: Run, since: int) -> bool:
    loss = run.get("train/loss")
    if loss is None:
        return False
    finite = loss.finite()
    before, after = finite.value[finite.step <= since], finite.value[finite.step > since]
    if not len(before) or len(after) < 3:
        return False
    then = float(np.median(before[-max(1, len(finite) // 20) :]))
    now = float(np.median(after[-max(1, len(after) // 4) :]))
    return now > then + 0.05 * abs(then)


def _finding(
    run: Run, loss: Series, best: int, level: float, last: float, sigmas: float, *, others: int, grave: bool
) -> Finding:
    start, end = int(loss.step[best]), int(loss.step[-1])
    train = run.get("train/loss")
    falls = f" while {train.name} does not" if train is not None else ""
    rise = (last - level) / abs(level)
    also = f" So do {others} more evaluation losses." if others else ""
    rest = "" if grave else " The run is not overfitting yet, and the last checkpoint is not its best."
    return Finding(
        detector="overfitting",
        severity=Severity.WARNING if grave else Severity.INFO,
        title="Overfitting" if grave else "Best checkpoint is not the last",
        message=(
            f"{loss.name} was best at step {start} (a level of {number(level)}) and has risen by "
            f"{rise:.{0 if grave else 1}%} to a level of {number(last)} at step {end}{falls}.{also}{rest}"
        ),
        metric=loss.name,
        start_step=start,
        end_step=end,
        peak_step=int(loss.step[best + int(np.argmax(loss.value[best:]))]),
        evidence={"best": level, "best_step": start, "last": last, "rise": rise, "score": sigmas},
        fixes=(
            f"Use the checkpoint of step {start}, not the last one; stop early.",
            "More or more varied data, weight decay, dropout, fewer epochs.",
            "If training and evaluation use different modes (batch norm, averaged weights), check those first.",
        ),
    )


DETECTOR = Detector("overfitting", "Overfitting", ("eval/loss", "train/loss"), Params(), detect)
