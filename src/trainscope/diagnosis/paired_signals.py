"""paired_signals: gradients, updates, attention or parts of the loss are of another size than the baseline's.

What it finds
    A signal whose typical size after the first third is under two thirds or over one and a half times the
    baseline's at the same steps, while the loss may look the same: a loss scaled by four under Adam, gradients
    that are no longer averaged over micro-batches, clipping that no longer clips, a balance loss that no longer
    reaches its router.
Algorithm
    The median of the ratio over common steps after the first third; it is told from the step on from which nine
    in ten are as far off, each judged with the four before and after it. Signals that are zero throughout in one run
    only count as infinitely different. Runs that do not pair need twice that.
Parameters
    ratio: largest ratio, either way, between two runs that pair.
    unpaired: the same for runs with other batches or another seed.
    part: largest relative difference of the mean of a part of the loss over the last third.
False positives
    An intended change of loss scale, clipping or learning rate: accept it as the new baseline.
Misses
    What changes a signal by less.
Reference
    Measured on injected faults: missing zero_grad 1.64-1.75, loss times four 3.93, healthy changes 0.93-1.15.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from trainscope.core.finding import Finding, Severity
from trainscope.core.metrics import Kind, kind
from trainscope.detectors.base import Skipped, number
from trainscope.diagnosis.base import Aligned, Compared, Comparer, Comparison, Pair, align
from trainscope.diagnosis.newey_west import mean_of

SIGNALS = (
    "train/grad_norm",
    "train/grad_norm_after_clip",
    "optimizer/update_norm",
    "model/weight_norm",
    "attention/logit_max",
    "attention/entropy",
    "smoke/router_gradient",
    "smoke/buffer_update",
    "amp/grad_scale",
)
"""Sizes that the recorder and most logs have; parts of the loss come beside them."""
OBJECTIVE = "smoke/objective_"
"""What each of several optimizers follows: parts of the loss, of which a large one hides the others."""
GRADIENTS = "Check what the loss is divided by, where gradients are cleared, and where they are clipped."
REMEDIES = {
    "optimizer/update_norm": "Check the learning rate, the optimizer's constants, and what changed the gradient.",
    "model/weight_norm": "Check the learning rate, the weight decay, and how the weights are initialised.",
    "attention/logit_max": "Check the scale and the mask of attention, and the learning rate.",
    "attention/entropy": "Check the scale and the mask of attention, and the learning rate.",
    "smoke/router_gradient": "Check that the balance loss still reaches the router, and what detaches its scores.",
    "smoke/buffer_update": "Check that batch norms train in train mode, their momentum, and what their inputs are.",
    "amp/grad_scale": "Check the GradScaler's first scale and growth interval, and for gradients that overflow.",
}
"""What to look at where a signal is of another size; gradients are the rest."""
LASTING, AROUND = 0.9, 9
"""Share of the steps from the onset on that must be outside, or as many as in the judged part, and steps around one
that tell: signals are noisy."""
LEAST = 6
"""Common steps below which nothing is judged."""


@dataclass(frozen=True, slots=True)
class Params:
    """How different is different."""

    ratio: float = 1.5
    """Healthy changes stay within 1.15."""
    unpaired: float = 2.5
    """Seeds alone move gradient norms by up to 1.2."""
    part: float = 0.15
    """Of the baseline's mean; parts of the loss are noisy and small."""


def compare(pair: Pair, params: Params) -> Compared | Skipped:
    """Compare sizes of signals."""
    findings: list[Finding] = []
    lines: list[Comparison] = []
    ratios: dict[str, float] = {}
    for name in SIGNALS:
        both = pair.both(name)
        if both is None or len(both.finite()) < LEAST:
            continue
        whole = both.finite()
        late = whole.tail(2 / 3)
        ratio = _ratio(late)
        limit = params.ratio if pair.pairing.exact else params.unpaired
        outside = not 1 / limit <= ratio <= limit
        lines.append(
            Comparison(name, "changed" if outside else "within margin", int(late.step[-1]), ratio, (1 / limit, limit))
        )
        ratios[name] = ratio
        # Where nothing is clipped the norm after clipping is the one before, and said already.
        if outside and not (name == SIGNALS[1] and np.isclose(ratio, ratios.get(SIGNALS[0], np.nan))):
            findings.append(_finding(name, late, ratio, limit, _onset(whole, late, limit)))
    for name, both in _parts(pair):
        found, line = _part(name, both, params)
        lines.append(line)
        findings += [found] if found else []
    if not lines:
        return Skipped("needs a gradient norm, an update norm or a part of the loss in both runs")
    return Compared(tuple(findings), tuple(lines))


def _ratio(both: Aligned) -> float:
    """Return the median ratio of two positive signals; 0 or infinity where one of them is nothing."""
    mine, theirs = float(np.median(both.run)), float(np.median(both.base))
    if theirs <= 0.0 or mine <= 0.0:
        return 1.0 if mine == theirs else (0.0 if mine <= 0.0 else float("inf"))
    keep = (both.run > 0) & (both.base > 0)
    return float(np.median(both.run[keep] / both.base[keep]))


def _onset(whole: Aligned, late: Aligned, limit: float) -> int:
    """Return the first step from which on nearly all are outside the limits, the first of `late` where none is.

    A step is outside if most of the `AROUND` steps around it are.
    """
    inside = (whole.run <= limit * whole.base) & (whole.base <= limit * whole.run)
    apart = ~inside | ((whole.run > 0) != (whole.base > 0))
    around = np.lib.stride_tricks.sliding_window_view(np.pad(apart, AROUND // 2, mode="edge"), AROUND)
    outside = around.mean(axis=1) > 0.5
    share = np.cumsum(outside[::-1])[::-1] / np.arange(len(outside), 0, -1)
    found = np.flatnonzero(outside & (share >= min(LASTING, share[-len(late)])))
    return int(whole.step[found[0]] if len(found) else late.step[0])


def _finding(name: str, both: Aligned, ratio: float, limit: float, onset: int) -> Finding:
    how = "0 where the baseline's is not" if ratio == 0.0 else f"{number(ratio)} times the baseline's"
    return Finding(
        detector="paired_signals",
        severity=Severity.WARNING,
        title="Signal of another size than the baseline's",
        message=f"{name} is {how} from step {onset} on (median over the last {len(both)} steps).",
        metric=name,
        start_step=onset,
        end_step=int(both.step[-1]),
        evidence={
            "ratio": ratio,
            "limit": limit,
            "value": float(np.median(both.run)),
            "baseline": float(np.median(both.base)),
        },
        fixes=(REMEDIES.get(name, GRADIENTS), "If the change is meant, save a new baseline."),
    )


def _parts(pair: Pair) -> Iterator[tuple[str, Aligned]]:
    """Yield the parts of the loss; only of runs that pair, since they move with everything."""
    if not pair.pairing.exact:
        return
    names = [name for name in pair.base.series if kind(name) is Kind.LOSS_PART]
    pairs = [(name, pair.both(name)) for name in names]
    for name, both in (*pairs, *_objectives(pair)):
        if both is not None and len(both.finite()) >= 2 * LEAST:
            yield name, both.finite().tail()


def _objectives(pair: Pair) -> Sequence[tuple[str, Aligned]]:
    """Return what each optimizer follows beside its likest in the baseline: their order is nobody's setting."""
    names = [name for name in pair.base.series if name.startswith(OBJECTIVE) and pair.run.get(name) is not None]
    best: Sequence[tuple[str, Aligned]] = ()
    least = np.inf
    for order in permutations(names):
        pairs = [(n, align(pair.run.series[m], pair.base.series[n])) for n, m in zip(names, order, strict=True)]
        apart = sum(float(np.nansum(np.abs(both.run - both.base))) for _, both in pairs)
        if apart < least:
            best, least = pairs, apart
    return best


def _part(name: str, both: Aligned, params: Params) -> tuple[Finding | None, Comparison]:
    difference, level = mean_of(both.run - both.base), float(np.mean(both.base))
    limit = params.part * abs(level)
    outside = difference.lower() > limit or difference.upper() < -limit
    line = Comparison(
        name,
        "changed" if outside else "within margin",
        int(both.step[-1]),
        level + difference.value,
        (level - limit, level + limit),
    )
    if not outside:
        return None, line
    return (
        Finding(
            detector="paired_signals",
            severity=Severity.WARNING,
            title="Part of the loss differs from the baseline's",
            message=(
                f"{name} over the last third is {number(level + difference.value)}, the baseline's {number(level)} "
                f"on the same batches."
            ),
            metric=name,
            start_step=int(both.step[0]),
            end_step=int(both.step[-1]),
            evidence={"difference": difference.value, "standard_error": difference.error, "margin": limit},
            fixes=("Check that this part still reaches the parameters it is for.",),
        ),
        line,
    )


COMPARER = Comparer("paired_signals", "Signal of another size", SIGNALS, Params(), compare)
