"""length_change: the run ended before its baseline did.

What it finds
    A training script that ends by itself after fewer optimizer steps than the baseline took: a loop that is left
    early, a loader that gives fewer batches, a number of steps or epochs that lost a digit. What the missing steps
    would have shown is not known, and everything else is compared over the steps that both have.
Algorithm
    Exact: the steps of two smoke runs, and whether the recorder ended the script or the script itself did. Of several
    baselines the shortest counts. A run that the recorder ended, and a log, may be shorter on purpose; that is
    said and is no finding.
Parameters
    missing: largest share of the baseline's steps that may be missing.
False positives
    An intended change of the number of steps or epochs, or of the batch size: accept it as the new baseline.
Misses
    A script that ends early after as many steps as were asked for: record more steps.
Reference
    None: steps are counted.
"""

from __future__ import annotations

from dataclasses import dataclass

from trainscope.core import facts
from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run
from trainscope.detectors.base import Skipped
from trainscope.diagnosis.base import Compared, Comparer, Comparison, Pair

METRIC = "length"


@dataclass(frozen=True, slots=True)
class Params:
    """How much shorter is shorter."""

    missing: float = 0.05
    """Of the baseline's steps; epochs without their last, smaller batch are a step shorter each."""


def compare(pair: Pair, params: Params) -> Compared | Skipped:
    """Compare how many steps the runs have."""
    if not all(facts.is_smoke(run) for run in (pair.run, *pair.baselines)):
        return _logs(pair)
    mine, theirs = _steps(pair.run), min(_steps(base) for base in pair.baselines)
    if theirs - mine <= max(1.0, params.missing * theirs):
        return Compared((), (Comparison(METRIC, "same" if mine == theirs else "within margin"),))
    wanted = facts.number(pair.run, "smoke.steps_wanted")
    if pair.run.config.get("smoke.ended") != "script" or (wanted is not None and mine >= wanted * (1 - params.missing)):
        return Compared((), (Comparison(METRIC, _first_of(mine, theirs)),))
    last = pair.run.last_step
    early = Finding(
        detector="length_change",
        severity=Severity.WARNING,
        title="Training ends early",
        message=(
            f"The script ended by itself after {mine:.0f} of the baseline's {theirs:.0f} steps; what the others would "
            "have shown is not known."
        ),
        metric=METRIC,
        start_step=last,
        end_step=last,
        evidence={"steps": mine, "baseline": theirs, "limit": params.missing},
        fixes=(
            "Check the number of steps or epochs, how many batches the loader gives, and what leaves the loop.",
            "If it is meant, save a new baseline.",
        ),
    )
    return Compared((early,), (Comparison(METRIC, "changed", last, mine, (theirs * (1 - params.missing), theirs)),))


def _logs(pair: Pair) -> Compared | Skipped:
    mine, theirs = pair.run.last_step, pair.base.last_step
    if mine is None or theirs is None or pair.run.x_axis != pair.base.x_axis:
        return Skipped("needs steps in both runs")
    if mine >= theirs:
        return Compared((), (Comparison(METRIC, "same" if mine == theirs else "within margin"),))
    return Compared(
        (), (Comparison(METRIC, f"ends at {pair.run.x_axis} {mine}, the baseline at {pair.base.x_axis} {theirs}"),)
    )


def _first_of(mine: float, theirs: float) -> str:
    return f"only the first {mine:.0f} of the baseline's {theirs:.0f} steps are compared"


def _steps(run: Run) -> float:
    return facts.number(run, "smoke.steps") or 0.0


COMPARER = Comparer("length_change", "Training ends early", ("smoke facts",), Params(), compare)
