"""eval_change: evaluation gives another result than the baseline's, though training may not.

What it finds
    An evaluation loss or score beyond its margin from the baseline's, either way, or an evaluation that the
    baseline has and this run lacks: a test set that is no longer normalised, BatchNorm statistics that no longer
    move, evaluation on the wrong data. Where neither has a loss, the size of the model's outputs; and evaluations
    that build graphs or run in train mode, where none did in the baseline.
Algorithm
    The last step that both evaluated, else the last of each. The difference against a margin; without pairing
    against the seed band (see paired_loss). Outputs are compared between runs that pair step by step.
Parameters
    relative, absolute: the margin, whichever is larger.
    band: half the width of the seed band, of the value.
    output: largest difference of the outputs' mean or spread, in the baseline's standard deviations.
False positives
    Another evaluation set, or an intended change: accept it as the new baseline.
Misses
    Evaluations that neither the log nor the recorder sees.
Reference
    The log-only gate of the project's benchmark uses the same margin and raises no false alarm on 55 changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from trainscope.core import facts
from trainscope.core.finding import Finding, Severity
from trainscope.core.metrics import Kind, kind
from trainscope.core.run import Series
from trainscope.detectors.base import Skipped, number
from trainscope.diagnosis.base import Compared, Comparer, Comparison, Pair, align
from trainscope.diagnosis.seed_band import half_width

EVAL, SEEN = "eval/loss", ("smoke/eval_cross_entropy", "smoke/eval_objective")
"""What a log calls it, and what a smoke run sees of it."""

OUTPUTS = ("smoke/eval_output_mean", "smoke/eval_output_std")
SIZES = {SEEN[0]: "smoke/eval_labels", SEEN[1]: "smoke/eval_targets", OUTPUTS[0]: "smoke/eval_outputs"}
"""How many numbers a value is the mean of."""
FEW = 2
"""Forwards that make an evaluation."""
FALL = 0.05
"""Of the way from the first training loss: what another seed explains at least, as for the training loss."""
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
    output: float = 0.15
    """Of the baseline's standard deviation of the outputs; rounding moves it by under 1 %."""


def compare(pair: Pair, params: Params) -> Compared | Skipped:
    """Compare every evaluation that the baseline has."""
    names = [n for n, s in pair.base.series.items() if len(s) and _is_evaluation(n)]
    if EVAL not in names:
        names += [name for name in SEEN if pair.base.get(name) is not None and _same_size(pair, name)]
    if not names and not facts.number(pair.base, "smoke.evaluations"):
        return Skipped("the baseline has no evaluation")
    findings: list[Finding] = [*_manners(pair), *_outputs(pair, params)]
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


def _manners(pair: Pair) -> Iterator[Finding]:
    """Yield what evaluations do now that none did in the baseline: build graphs, run in train mode."""
    said = (
        ("with_gradient", "Evaluation builds graphs", "with gradients on", "Evaluate under torch.no_grad()."),
        ("in_train_mode", "Evaluation in train mode", "with dropout or batch norm in train mode", "Call model.eval()."),
    )
    for key, title, how, fix in said:
        mine, theirs = (
            [facts.number(run, f"smoke.evaluations{name}") or 0.0 for name in ("", f"_{key}")]
            for run in (pair.run, pair.base)
        )
        # A single pass, to print a shape or fill a cache, is no evaluation; and other forwards without gradient (of a
        # generator whose samples are only judged) are none either: it is those of the baseline that must be missing.
        if theirs[0] < FEW or theirs[1] or mine[1] < FEW or 2 * (mine[0] - mine[1]) > theirs[0]:
            continue
        yield Finding(
            detector="eval_change",
            severity=Severity.WARNING,
            title=title,
            message=f"{int(mine[1])} of {int(mine[0])} evaluation forwards ran {how}, in the baseline none.",
            metric=f"smoke/evaluations_{key}",
            evidence={"forwards": mine[1], "evaluations": mine[0]},
            fixes=(fix, "If the change is meant, save a new baseline."),
        )


def _same_size(pair: Pair, name: str) -> bool:
    """Tell whether an evaluation is of as many numbers as the baseline's: another pass beside it is no fault."""
    both = pair.both(SIZES.get(name, ""))
    return both is None or not len(both) or bool(both.run[-1] == both.base[-1])


def _outputs(pair: Pair, params: Params) -> Iterator[Finding]:
    """Yield a finding where the model gives evaluations another output; only of runs that pair step by step."""
    mean_of, spread_of = OUTPUTS
    mean, spread = pair.both(mean_of), pair.both(spread_of)
    if not pair.pairing.exact or mean is None or spread is None or not _same_size(pair, mean_of):
        return
    if not len(mean.finite()) or not len(spread.finite()):
        return
    base = float(spread.base[-1])
    moved = max(abs(float(mean.run[-1] - mean.base[-1])), abs(float(spread.run[-1] - base))) / max(base, 1e-12)
    if not base > 0 or moved <= params.output:
        return
    yield Finding(
        detector="eval_change",
        severity=Severity.WARNING,
        title="Evaluation sees another model",
        message=(
            f"In evaluation at step {int(spread.step[-1])} the model's output has a mean of "
            f"{number(float(mean.run[-1]))} and a standard deviation of {number(float(spread.run[-1]))}, in the "
            f"baseline {number(float(mean.base[-1]))} and {number(base)}."
        ),
        metric="smoke/eval_output_std",
        start_step=int(spread.step[-1]),
        end_step=int(spread.step[-1]),
        evidence={"moved": moved, "limit": params.output},
        fixes=("Check the weights that are evaluated (an average of them?), batch norm, and the inputs.",),
    )


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
        limit = max(limit, half_width(pair, name, max(params.band * abs(base), FALL * _fallen(pair, name, base))))
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


def _fallen(pair: Pair, name: str, base: float) -> float:
    """Return how far an evaluation loss lies below the first training loss: a small end of a long way is noisy."""
    start = pair.base.get("train/loss")
    if not _is_loss(name) or start is None or not len(start):
        return 0.0
    first = float(np.median(start.value[:3]))
    return max(0.0, first - base) if np.isfinite(first) else 0.0


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
