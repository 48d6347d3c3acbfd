"""eval_change: evaluation gives another result than the baseline's, though training may not.

What it finds
    An evaluation loss or score beyond its margin from the baseline's, either way, or an evaluation that the
    baseline has and this run lacks: a test set that is no longer normalised, BatchNorm statistics that no longer
    move, evaluation on the wrong data.
Algorithm
    The last step that both evaluated, else the last of each. The difference against a margin; without pairing
    against the seed band (see paired_loss).
Parameters
    relative, absolute: the margin, whichever is larger.
    band: half the width of the seed band, of the value.
False positives
    Another evaluation set, or an intended change: accept it as the new baseline.
Misses
    Evaluations that neither the log nor the recorder sees.
Reference
    The log-only gate of the project's benchmark uses the same margin and raises no false alarm on 55 changes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainscope.core.finding import Finding, Severity
from trainscope.core.metrics import Kind, kind
from trainscope.core.run import Series
from trainscope.detectors.base import Skipped, number
from trainscope.diagnosis.base import Compared, Comparer, Comparison, Pair, align
from trainscope.diagnosis.seed_band import half_width

EVAL, SEEN = "eval/loss", ("smoke/eval_cross_entropy", "smoke/eval_objective")
"""What a log calls it, and what a smoke run sees of it."""

SMALL = 0.1
"""Value below which the absolute margin shrinks with it: an error of 0.01 must not double unseen."""


@dataclass(frozen=True, slots=True)
class Params:
    """How different is different."""

    relative: float = 0.02
    """Of the baseline's value."""
    absolute: float = 0.01
    """In the unit of the value."""
    band: float = 0.15
    """Of the baseline's value: evaluations are single numbers, and move more with the seed than means do."""


def compare(pair: Pair, params: Params) -> Compared | Skipped:
    """Compare every evaluation that the baseline has."""
    names = [n for n, s in pair.base.series.items() if len(s) and _is_evaluation(n)]
    if EVAL not in names:
        names += [name for name in SEEN if pair.base.get(name) is not None]
    if not names:
        return Skipped("the baseline has no evaluation")
    findings: list[Finding] = []
    lines: list[Comparison] = []
    for name in names:
        mine = pair.run.get(name)
        if mine is None:
            # A loss written out by hand is not seen by the recorder, and none the worse for it.
            if kind(name) is Kind.EVAL_LOSS:
                findings.append(_missing(name))
            lines.append(Comparison(name, "missing"))
            continue
        found, line = _one(pair, name, mine, pair.base.series[name], params)
        lines.append(line)
        findings += [found] if found else []
    return Compared(tuple(findings), tuple(lines))


def _is_loss(name: str) -> bool:
    return name in SEEN or kind(name) is Kind.EVAL_LOSS


def _is_evaluation(name: str) -> bool:
    return kind(name) is Kind.EVAL_LOSS or (kind(name) is Kind.SCORE and name.startswith("eval"))


def _one(pair: Pair, name: str, mine: Series, theirs: Series, params: Params) -> tuple[Finding | None, Comparison]:
    both = align(mine, theirs)
    step = int(both.step[-1]) if len(both) else None
    value = float(both.run[-1] if len(both) else mine.value[-1])
    base = float(both.base[-1] if len(both) else theirs.value[-1])
    limit = max(params.relative * abs(base), params.absolute * min(1.0, abs(base) / SMALL))
    if not pair.pairing.exact:
        limit = max(limit, half_width(pair, name, params.band * abs(base)))
    if not np.isfinite(base):
        return None, Comparison(name, "the baseline's is not finite", step)
    same = np.isfinite(value) and abs(value - base) <= limit
    line = Comparison(name, "within margin" if same else "changed", step, value, (base - limit, base + limit))
    if same:
        return None, line
    worse = not np.isfinite(value) or (value > base) == _is_loss(name)
    found = Finding(
        detector="eval_change",
        severity=Severity.ERROR if worse else Severity.WARNING,
        title="Evaluation worse than the baseline" if worse else "Evaluation better than the baseline",
        message=(
            f"{name} is {number(value)}{'' if step is None else f' at step {step}'}, the baseline's {number(base)}; "
            f"margin {number(limit)}."
        ),
        metric=name,
        start_step=step,
        end_step=step,
        peak_step=step,
        evidence={"value": value, "baseline": base, "margin": limit},
        fixes=(
            "Check that evaluation sees the same data, prepared in the same way, with the model in eval mode.",
            "If the change is meant, save a new baseline.",
        ),
    )
    return found, line


def _missing(name: str) -> Finding:
    return Finding(
        detector="eval_change",
        severity=Severity.WARNING,
        title="Evaluation missing",
        message=f"The baseline has {name}, this run does not.",
        metric=name,
        fixes=("Run it for as many steps as the baseline, or save a new baseline.",),
    )


COMPARER = Comparer("eval_change", "Evaluation differs from the baseline", (EVAL, *SEEN), Params(), compare)
