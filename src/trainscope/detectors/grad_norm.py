"""grad_norm: the gradient norm explodes, drifts away, or is pinned by clipping.

What it finds
    (a) *Explosion*: a burst far above the recent level: at least 5 times over three points or more, or
    50 times at a single point. A single point above 5 times that stands out is info, and so is an
    explosion beside a warning about the loss at the same steps: one event is one warning.
    (b) *Drift*: the level at the end is `drift` times its lowest level after the first tenth of the run. `slow`
    times, over half of the run or more, is an information.
    (c) *Saturation*: exactly the same value for at least 50 points and a fifth of the run, after it had
    moved: every step is clipped. A norm that is constant from the first point on is logged after
    clipping: info.
Algorithm
    As in `spikes`, on the logarithm: jumps against the run's own tail. Drift compares block medians. Where layers were
    recorded, the one that has half of the rise of the squared norm or more is named.
Parameters
    burst, single: smallest ratio to the level before, for a burst and for one point.
    drift, slow: smallest ratio of the last level to the lowest, for a warning and for an information.
False positives
    A fine-tuning that starts from a solved task and a gradient that grows as the loss overfits.
Misses
    An explosion in the first 8 points. Clipped norms hide what the gradient did: log the norm before.
Reference
    BigScience's BLOOM logs: the norm rose 1 step before the loss did and 4 before its peak.
    OLMo#266 (spikes are local to parameters; the global norm sees them late).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trainscope.core.finding import Finding, Severity
from trainscope.core.metrics import Kind
from trainscope.core.robust import block_medians, difference_sigma, stretches
from trainscope.core.run import Run, Series
from trainscope.detectors.base import MOST, Detector, Skipped, by_kind, number
from trainscope.detectors.engine.events import Excursion, Limits
from trainscope.detectors.engine.jumps import jumps
from trainscope.detectors.engine.places import place
from trainscope.detectors.engine.restarts import near_restart

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Params:
    """Ratios to the recent level."""

    burst: float = 5.0
    """Over three points or more; single batches reach 15 times without harm."""
    single: float = 50.0
    """At one or two points."""
    drift: float = 10.0
    """Natural growth over a long run is 3 to 5 times."""
    slow: float = 3.0
    """Reached by 0 of 252 healthy recordings and by 1 of 11 healthy public logs."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return explosions, a drift and a saturation of each global gradient norm."""
    main = run.get("train/grad_norm")
    norms = [main] if main is not None else by_kind(run, Kind.GRAD_NORM)
    if not norms:
        return Skipped("needs train/grad_norm")
    findings: list[Finding] = []
    for norm in norms:
        finite = norm.finite()
        positive = finite.value > 0
        moved = Series(norm.name, finite.step[positive], finite.value[positive])
        pinned = _saturated(finite)
        drift = _drift(moved, params)
        since = min(
            (f.start_step for f in drift if f.start_step is not None and f.severity > Severity.INFO), default=None
        )
        bursts = [f for f in _explosions(moved, params, since) if not near_restart(run, f.start_step or 0)]
        # What grows after an explosion is no slow growth.
        findings += pinned + [f for f in drift if f.severity > Severity.INFO or not bursts]
        findings += [_placed(run, f) for f in bursts]
    return findings


def _explosions(norm: Series, params: Params, drift_start: int | None) -> list[Finding]:
    if len(norm) < 12:
        return []
    log = np.log(norm.value)
    events = [e for e in jumps(log, Limits(min_rise=0.0, lonely=4.0)) if e.top - e.level >= np.log(params.burst)]
    if drift_start is not None:
        events = [e for e in events if norm.step[e.end] < drift_start]
    worst = sorted(events, key=lambda e: e.level - e.top)[:MOST]
    return [_explosion(norm, e, log, params, len(events)) for e in sorted(worst, key=lambda e: e.start)]


def _explosion(norm: Series, event: Excursion, log: FloatArray, params: Params, total: int) -> Finding:
    ratio = float(np.exp(event.top - event.level))
    high = int(np.count_nonzero(log[event.start : event.end + 1] >= event.level + np.log(params.burst)))
    severity = Severity.WARNING if high >= 3 or ratio >= params.single else Severity.INFO
    start, peak, end = (int(norm.step[i]) for i in (event.start, event.peak, event.end))
    many = f" It is one of {total} in this run." if total > 1 else ""
    return Finding(
        detector="grad_norm",
        severity=severity,
        title="Gradient norm explodes" if severity is Severity.WARNING else "Gradient norm peak",
        message=(
            f"{norm.name} rose to {number(float(norm.value[event.peak]))} at step {peak}, {number(ratio)} times its "
            f"recent level of {number(float(np.exp(event.level)))}, at {high} point{'s' if high != 1 else ''}.{many}"
        ),
        metric=norm.name,
        start_step=start,
        end_step=end,
        peak_step=peak,
        evidence={
            "value": float(norm.value[event.peak]),
            "baseline": float(np.exp(event.level)),
            "ratio": ratio,
            "points": high,
            "score": event.score,
        },
        fixes=(
            "Clip the gradient norm at 1.0, before the optimizer step and after unscaling.",
            f"Look at the {'batch of step' if start == peak else f'batches of steps {start} to'} {peak}.",
            "Lower the learning rate or lengthen the warm-up.",
        ),
    )


def _placed(run: Run, finding: Finding) -> Finding:
    """Name the layer that has most of an explosion, where layers were recorded."""
    if finding.metric != "train/grad_norm" or finding.start_step is None or finding.peak_step is None:
        return finding
    found = place(run.layers, "grad_l2_norm", finding.start_step, finding.peak_step)
    if found is None:
        return finding
    return replace(finding, layer=found.layer, message=f"{finding.message} {found.said}")


def _drift(norm: Series, params: Params) -> list[Finding]:
    n = len(norm)
    if n < 60:
        return []
    size = max(3, n // 50)
    blocks = block_medians(np.log(norm.value), size)
    skip = len(blocks) // 10
    lowest = skip + int(np.argmin(blocks[skip:]))
    level, last = float(blocks[lowest]), float(np.median(blocks[-3:]))
    noise = difference_sigma(blocks)
    rising = np.mean(np.diff(blocks[lowest:]) > -noise) if lowest < len(blocks) - 1 else 0.0
    strong = last - level >= np.log(params.drift)
    over = np.flatnonzero(blocks[lowest:] > level + 3.0 * max(noise, 0.05))
    lasts = len(over) > 0 and len(blocks) - lowest - over[0] >= len(blocks) / 2
    slow = last - level >= np.log(params.slow) and lasts
    if not (strong or slow) or last - level < 8.0 * noise or len(blocks) - lowest < 5 or rising < 0.7:
        return []
    start = int(norm.step[min(n - 1, (lowest + int(over[0])) * size)])
    return [
        Finding(
            detector="grad_norm",
            severity=Severity.WARNING if strong else Severity.INFO,
            title="Gradient norm drifts up" if strong else "Gradient norm grows",
            message=(
                f"{norm.name} grew from {number(float(np.exp(level)))} to {number(float(np.exp(last)))} "
                f"({number(float(np.exp(last - level)))} times) from step {start} on."
                + ("" if strong else " That is usual in long runs while the loss falls.")
            ),
            metric=norm.name,
            start_step=start,
            end_step=int(norm.step[-1]),
            peak_step=int(norm.step[int(np.argmax(norm.value))]),
            evidence={
                "lowest": float(np.exp(level)),
                "last": float(np.exp(last)),
                "ratio": float(np.exp(last - level)),
            },
            fixes=(
                "Raise weight decay or lower the learning rate; add a z-loss if the output logits grow.",
                "Use QK-norm if attention logits grow.",
            ),
        )
    ]


def _saturated(norm: Series) -> list[Finding]:
    n = len(norm)
    if n < 50:
        return []
    same = np.abs(np.diff(norm.value)) <= 1e-3 * np.abs(norm.value[1:])
    edges = stretches(same)
    spans = [(a, b) for a, b in edges if b - a >= max(49, n // 5) and norm.value[a] > 0]
    if not spans:
        return []
    begin, end = max(spans, key=lambda s: s[1] - s[0])
    whole = begin <= max(3, n // 50)
    start, last, value = int(norm.step[begin]), int(norm.step[end]), float(norm.value[begin])
    return [
        Finding(
            detector="grad_norm",
            severity=Severity.INFO if whole else Severity.WARNING,
            title="Gradient norm is constant" if whole else "Every step is clipped",
            message=f"{norm.name} is pinned to {number(value)} at {end - begin + 1} points from step {start} to {last}"
            + (
                ": it is logged after clipping."
                if whole
                else ": the gradient is above the clipping limit all the time."
            ),
            metric=norm.name,
            start_step=start,
            end_step=last,
            peak_step=start,
            evidence={"value": value, "points": int(end - begin + 1)},
            fixes=(
                "Log the norm that clip_grad_norm_ returns: it is the one before clipping.",
                "Raise the clipping limit or lower the learning rate if the norm is really that high.",
            ),
        )
    ]


DETECTOR = Detector("grad_norm", "Gradient norm explodes", ("train/grad_norm",), Params(), detect)
