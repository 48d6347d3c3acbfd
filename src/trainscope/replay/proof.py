"""Did it help? A run with its batches left out, held against the run it is to mend.

The script, the seed and the batches before the first one left out are the same, so both runs are the same up to
there, bit by bit where the training is deterministic; what differs later is what leaving out did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from trainscope.core.finding import Finding, Severity
from trainscope.core.positions import batches
from trainscope.core.run import Run
from trainscope.detectors import Configured, judge
from trainscope.detectors.base import number
from trainscope.diagnosis.newey_west import mean_of
from trainscope.diagnosis.ranks import rank_of
from trainscope.replay.alignment import Alignment, align
from trainscope.replay.config import ReplayConfig
from trainscope.replay.reached import other_batches, way_out, why_not

INCIDENTS = frozenset(
    "spikes unrecovered_spike divergence loss_shift grad_norm non_finite non_finite_origin bad_batch".split()  # noqa: SIM905
)
"""Detectors of what a replay is to remove."""
REACH = 20
"""Steps around the incident that belong to it, as in a story."""
HISTORY = 25
"""Steps before the incident that say what the loss was."""
LEFT = 0.5
"""Share of the rise from which on the spike is still there, whether or not a detector says so."""
NOISE = 6.0
"""Robust standard deviations that a loss rises by itself over the few steps of an incident."""


class Verdict(StrEnum):
    """What a replay shows."""

    VERIFIED = "verified"
    """The incident is gone and no other has come."""
    STILL_THERE = "still there"
    MOVED = "moved"
    """It is gone, and another one has come that the original run had not."""
    NOT_PROVEN = "not proven"
    """The replay says nothing about it."""


@dataclass(frozen=True, slots=True)
class Row:
    """One number of both runs."""

    metric: str
    what: str
    original: float | None
    replay: float | None


@dataclass(frozen=True, slots=True)
class Proof:
    """A verdict with the numbers behind it."""

    verdict: Verdict
    reason: str
    rows: tuple[Row, ...] = ()
    notes: tuple[str, ...] = field(default=())


def prove(original: Run, replay: Run, config: ReplayConfig, chosen: tuple[Configured, ...]) -> Proof:
    """Compare a replay with the run that its plan is about.

    Parameters
    ----------
    original : Run
    replay : Run
        Recorded with ``trainscope smoke --replay``.
    config : ReplayConfig
    chosen : tuple of Configured
        The detectors.
    """
    if rank_of(original) != rank_of(replay):
        return Proof(Verdict.NOT_PROVEN, _ranks(original, replay))
    unreached = why_not(replay, config)
    if unreached is not None:
        return Proof(Verdict.NOT_PROVEN, unreached)
    alignment = align(original, replay)
    at = None if config.onset is None else alignment.at(config.onset)
    before, after = (_incidents(run, chosen) for run in (original, replay))
    its = [f for f in before if config.onset is not None and _touches(f, config.onset, config.onset + REACH)]
    if config.onset is None or not its:
        at_step = "" if config.onset is None else f" at step {config.onset}"
        return Proof(Verdict.NOT_PROVEN, f"the original run shows no incident{at_step} that could be gone")
    last = replay.last_step or 0
    if at is None:
        return Proof(Verdict.NOT_PROVEN, f"the replay ends at step {last}, before the incident: {way_out(replay)}")
    notes = _sameness(original, replay, alignment, config)
    end = max(f.end_step or f.start_step or 0 for f in its)
    rows = (*_peaks(original, replay, config.onset, end, at), *_afterwards(original, replay, alignment, end))
    spans = [(config.onset, end, at, at + max(end - config.onset, 0) + REACH), *_others(config, alignment, end)]
    here = [f for f in after if any(_touches(f, first, last) for *_, first, last in spans)]
    known = {f.fingerprint for f in before if not any(_touches(f, first, last) for first, last, *_ in spans)}
    elsewhere = [f for f in after if f not in here and f.fingerprint not in known]
    verdict, reason = _verdict(config, rows, here, elsewhere)
    others = other_batches(original, replay, alignment, config)
    if verdict is Verdict.VERIFIED and config.skip_batches and others is not None:
        verdict, reason = Verdict.NOT_PROVEN, f"{reason}; {others}"
    return Proof(verdict, reason, rows, notes)


def _ranks(original: Run, replay: Run) -> str:
    was, now = ("one process" if (rank := rank_of(run)) is None else f"rank {rank}" for run in (original, replay))
    return f"the original run is of {was} and the replay of {now}: start as many processes as then"


def _others(config: ReplayConfig, alignment: Alignment, end: int) -> list[tuple[int, int, int, int]]:
    """Return the places of the other bad batches that were left out, behind the main incident.

    Returns
    -------
    list of (int, int, int, int)
        First and last step of each in the original, and in the replay.
    """
    bad = sorted({b.step for b in config.batches if b.is_bad and b.step is not None and b.step > end})
    places = [(step, alignment.at(step)) for step in bad]
    return [(step, step, at, at) for step, at in places if at is not None]


def _incidents(run: Run, chosen: tuple[Configured, ...]) -> list[Finding]:
    found = judge(run, tuple(one for one in chosen if one.detector.id in INCIDENTS)).findings
    return [f for f in found if f.severity >= Severity.WARNING and f.start_step is not None]


def _touches(finding: Finding, first: int, last: int) -> bool:
    start = finding.start_step or 0
    return start <= last and (start if finding.end_step is None else finding.end_step) >= first - 1


def _sameness(original: Run, replay: Run, alignment: Alignment, config: ReplayConfig) -> tuple[str, ...]:
    """Say whether both runs are the same until something is left out."""
    step, mine, theirs = alignment.values(original, replay, "train/loss")
    first = min(config.steps, default=config.onset or 0)
    differs = np.flatnonzero((mine != theirs) & (step < first) & ~(np.isnan(mine) & np.isnan(theirs)))
    if not len(differs):
        return (f"the loss is the same, bit by bit, for the {int((step < first).sum())} steps before step {first}",)
    return (
        f"the runs differ from step {int(step[differs[0]])} on, before anything was left out: the training is not "
        "deterministic (or its seed is not fixed: --seed), and the comparison is not exact",
    )


def _peaks(original: Run, replay: Run, onset: int, end: int, at: int) -> list[Row]:
    """Return the largest value in the incident, and the usual one before it."""
    rows = []
    for metric in ("train/loss", "train/grad_norm"):
        mine, theirs = _window(original, metric, onset, end), _window(replay, metric, at, at + end - onset)
        if mine is None or theirs is None:
            continue
        rows += [
            Row(metric, f"usual before step {onset}", mine[0], theirs[0]),
            Row(metric, f"highest in steps {onset}-{end}", mine[1], theirs[1]),
        ]
        rows.append(Row(metric, "noise before", mine[2], theirs[2]))
    return rows


def _window(run: Run, metric: str, first: int, last: int) -> tuple[float, float, float] | None:
    """Return the usual value before a window, the highest in it, and the noise before; None where there is none."""
    series = run.get(metric)
    if series is None:
        return None
    inside = series.value[(series.step >= first) & (series.step <= last)]
    before = series.value[(series.step >= first - HISTORY) & (series.step < first)]
    before = before[np.isfinite(before)]
    if not len(inside) or not len(before):
        return None
    usual = float(np.median(before))
    highest = float("inf") if not np.isfinite(inside).all() else float(inside.max())
    return usual, highest, 1.4826 * float(np.median(np.abs(before - usual)))


def _afterwards(original: Run, replay: Run, alignment: Alignment, end: int) -> list[Row]:
    """Return the mean loss over the last third of what comes after the incident, batch by batch."""
    step, mine, theirs = alignment.values(original, replay, "train/loss")
    later = step > end
    later[: len(step) - max(1, int(later.sum()) // 3)] = False
    later &= np.isfinite(mine) & np.isfinite(theirs)
    if later.sum() < 5:
        return []
    difference = mean_of(theirs[later] - mine[later])
    span = f"mean of steps {int(step[later][0])}-{int(step[later][-1])}, batch by batch"
    return [
        Row("train/loss", span, float(mine[later].mean()), float(theirs[later].mean())),
        Row("train/loss", f"difference there, error {number(difference.error)}", None, difference.value),
    ]


def _verdict(
    config: ReplayConfig, rows: Sequence[Row], here: Sequence[Finding], elsewhere: Sequence[Finding]
) -> tuple[Verdict, str]:
    what = "nothing left out"
    if config.skip_batches:
        undone = config.method == "skip_update"
        what = f"{batches(len(config.skip_batches))} left out{' by undoing their updates' if undone else ''}"
    if here:
        return Verdict.STILL_THERE, f"{what}, and the incident is still there: {_said(here[0])}"
    rise = _rise(rows)
    if rise is not None and rise[1] > LEFT * rise[0]:
        return Verdict.STILL_THERE, (
            f"{what}, and the loss still rises by {number(rise[1])} where it rose by {number(rise[0])}"
        )
    if elsewhere:
        return Verdict.MOVED, f"{what}: the incident is gone from step {config.onset}, and now {_said(elsewhere[0])}"
    gone = f"the incident of step {config.onset} is gone"
    if rise is not None:
        gone += f": the loss rises by {number(max(rise[1], 0.0))} there, where it rose by {number(rise[0])}"
    if not config.skip_batches:
        gone += "; the same batches do no harm a second time, so suspect the hardware or chance, not the data"
    return Verdict.VERIFIED, f"{what}: {gone}"


def _rise(rows: Sequence[Row]) -> tuple[float, float] | None:
    """Return by how much the loss rose in both runs; None where it did not rise above noise in the original."""
    by = {(row.metric, row.what.partition(" ")[0]): row for row in rows}
    usual, highest, noise = (by.get(("train/loss", word)) for word in ("usual", "highest", "noise"))
    if usual is None or highest is None or noise is None:
        return None
    values = (usual.original, usual.replay, highest.original, highest.replay, noise.original)
    if any(value is None for value in values):
        return None
    before, before_again, top, top_again, spread = (float(value) for value in values if value is not None)
    rose, again = top - before, top_again - before_again
    return (rose, again) if rose > NOISE * spread and np.isfinite(again) else None


def _said(finding: Finding) -> str:
    return finding.message[:1].lower() + finding.message[1:].rstrip(".")
