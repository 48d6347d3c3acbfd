"""step_order: steps were logged twice, out of order, or are missing.

What it finds
    (a) *Rewind*: the log goes back and writes steps again: a resume from an older checkpoint.
    (b) *Out of order*: rows are shuffled among their neighbours: several writers.
    (c) *Gap*: a stretch without rows, far longer than the logging interval on both sides of it.
    (d) *Started over*: learning rate and loss both begin again while the step counter goes on; or a log holds
    a launch that had come far, and after it the one that began anew and went on for longer.
Algorithm
    (a) and (b) are what the reader noted while it put the steps in order. (c) compares each interval with
    the median of the 10 before it and the 10 after it. (d) needs a learning rate that fell under 5 % of its
    peak and rises again, and a loss that is back at 70 % of its first value; or two launches of 20 losses or
    more, in a file of at most four launches, of which the first stopped before 80 % of the steps of the second.
    The median of the second's first five losses must be nearer to that of the other's first five than last five.
Parameters
    gap_intervals: smallest gap, in logging intervals.
    gap_share: smallest gap, as a share of the run.
False positives
    A log that was cut out on purpose. Two to four trials of one script in one file, the shorter ones first.
Misses
    A gap in a log without a step column. A launch that was begun anew and did not come as far as the one before, and
    one of five or more in a file, which are taken for the trials of a search.
Reference
    entrenar#294 and Lightning#18780 (data repeated or skipped at a resume).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Note, Run, Series
from trainscope.detectors.base import Detector, Skipped
from trainscope.detectors.engine.restarts import restart_steps

_AGAIN = "Training started over"
_NOTES = {
    "rewind": ("Steps logged twice", "the run was resumed from an older checkpoint"),
    "out_of_order": ("Steps out of order", "several writers, or rows sorted by something else"),
    "duplicate_step": ("Duplicate steps", "two processes may write one log"),
    "given_up": (_AGAIN, "no checkpoint was found or loaded, or this is another trial"),
}
_START_OVER = (
    "Check that the checkpoint was found and loaded when the run continued here.",
    "If this is another trial, write it to a log of its own.",
)


@dataclass(frozen=True, slots=True)
class Params:
    """What counts as a gap."""

    gap_intervals: float = 20.0
    """Logging intervals; a slow checkpoint costs a few."""
    gap_share: float = 0.02
    """Share of the run."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return what is wrong with the order of the steps."""
    if run.x_axis == "row":
        return Skipped("needs a step column")
    findings = [_from_note(n) for n in run.notes if n.kind in _NOTES and n.start_step is not None]
    findings += [_started_over(step) for step in restart_steps(run)]
    densest = max(run.series.values(), key=len, default=None)
    if densest is not None:
        findings += _gaps(densest, params)
    return findings


def _started_over(step: int) -> Finding:
    return Finding(
        detector="step_order",
        severity=Severity.ERROR,
        title=_AGAIN,
        message=f"At step {step} learning rate and loss begin again as in a new run, while the step counter goes on.",
        metric="train/loss",
        start_step=step,
        end_step=step,
        peak_step=step,
        fixes=_START_OVER,
    )


def _from_note(note: Note) -> Finding:
    title, cause = _NOTES[note.kind]
    few = note.kind == "duplicate_step" and note.count < 5
    return Finding(
        detector="step_order",
        severity=Severity.INFO if few else Severity.WARNING,
        title=title,
        message=f"{note.message[:1].upper()}{note.message[1:]}: {cause}.",
        start_step=note.start_step,
        end_step=note.end_step,
        peak_step=note.start_step,
        evidence={"rows": note.count},
        fixes=_START_OVER
        if note.kind == "given_up"
        else (
            "After a resume, check that optimizer, scheduler, RNG and data sampler continued where they were.",
            "Let one process write one log.",
        ),
    )


def _gaps(series: Series, params: Params) -> list[Finding]:
    interval = np.diff(series.step).astype(np.float64)
    if len(interval) < 20:
        return []
    span = float(series.step[-1] - series.step[0])
    large = np.flatnonzero(interval >= params.gap_share * span)
    findings = []
    for i in large:
        before, after = interval[max(0, i - 10) : i], interval[i + 1 : i + 11]
        if len(before) < 5 or len(after) < 5:
            continue
        usual = max(float(np.median(before)), float(np.median(after)))
        if (
            interval[i] < params.gap_intervals * usual
            or before.max() > 0.25 * interval[i]
            or after.max() > 0.25 * interval[i]
        ):
            continue
        start, end = int(series.step[i]), int(series.step[i + 1])
        findings.append(
            Finding(
                detector="step_order",
                severity=Severity.WARNING,
                title="Steps are missing",
                message=f"Nothing was logged between steps {start} and {end}; the interval is otherwise {usual:.0f}.",
                start_step=start,
                end_step=end,
                peak_step=start,
                evidence={"gap_steps": end - start, "usual_interval": usual},
                fixes=("Look for a crash, a lost log file or a process that ran without the logger.",),
            )
        )
    return findings


DETECTOR = Detector("step_order", "Steps out of order", ("any metric",), Params(), detect)
