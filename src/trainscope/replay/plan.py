"""From a story to a plan: skip batches, fix the cause, or run the step again, and from where.

The rules
    Bad batches: skip those and nothing else. A spike without a visible cause, or one that the optimizer's state
    leads, with clean batches: skip a range around it, as PaLM did. Schedule, numerics, code: skip nothing, fix it. NaN
    from clean data: run the step again first; a finite answer is a fault of the hardware. Rewind at least 100 steps
    before the first sign: the state that a spike meets is older than the spike.
Reference
    A. Chowdhery et al., "PaLM", arXiv:2204.02311, section 5.1: restart about 100 steps before the spike and skip 200 to
    500 batches; the same batches did no harm to another checkpoint. The Llama Team, "The Llama 3 Herd of Models",
    arXiv:2407.21783, section 3.3.4 (silent data corruption).
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from trainscope.core import facts
from trainscope.core.finding import Finding
from trainscope.core.positions import numbers, ranges
from trainscope.core.run import Run
from trainscope.diagnosis.case import main_story
from trainscope.diagnosis.signs import Cause, Story
from trainscope.replay.checkpoints import Checkpoint, last_before
from trainscope.replay.config import FILE, Action, Batch, Method, ReplayConfig, Source
from trainscope.replay.positions import Positions, positions_of, why_unplanned

LEAD = 100
"""Steps from the checkpoint to the first sign, at least (PaLM)."""
BEFORE, AFTER, AFTER_AT_MOST = 100, 200, 400
"""Steps around the first sign whose batches a spike without bad batches skips: 300 batches, at most 500."""
PALLIATIVE = (
    "skipping is a palliative: it removes the trigger and not the weakness; the same batches may do no harm to another "
    "state, and another batch may trigger it again"
)
OWN_BATCHES = (
    "the script makes its batches itself, so none can be taken out of a loader: it draws them and trains on them as "
    "before, and the update is undone; schedules, and averages that the script keeps, go on"
)
_NAN = frozenset({"non_finite", "non_finite_origin"})
_CODE = frozenset({"optimizer_state", "clipping", "weight_norm"})
"""Detectors of an optimizer that is used or set wrongly: no batch is at fault."""


@dataclass(frozen=True, slots=True)
class Places:
    """What there is to begin again from."""

    checkpoints: Sequence[Checkpoint] = ()
    rng_states: Sequence[Checkpoint] = ()
    looked_in: str = "the run's folder"


@dataclass(frozen=True, slots=True)
class _Advice:
    action: Action
    reason: str
    steps: tuple[int, ...] = ()
    bad: frozenset[int] = frozenset()
    notes: tuple[str, ...] = ()


def plan(
    run: Run,
    findings: Sequence[Finding],
    stories: Sequence[Story],
    places: Places,
    *,
    source: Source,
    file: str = FILE,
) -> ReplayConfig | None:
    """Return how to train this run again; None where nothing happened to it, or its log counts no steps.

    Parameters
    ----------
    run : Run
    findings : sequence of Finding
        Of the run.
    stories : sequence of Story
        Of the same findings.
    places : Places
        Checkpoints and generator states that exist.
    source : Source
        How the plan names the run.
    file : str
        What the plan will be called, for the commands in it.
    """
    if not stories or why_unplanned(run) is not None:
        return None
    # What a run has from its first step on is no incident; it stands in the report.
    later = [one for one in stories if one.onset > (run.first_step or 0)]
    story = main_story(later, findings) or stories[0]
    advice = _advise(run, findings, story, stories)
    positions = positions_of(run)
    batches = _batches(positions, advice)
    start, about = _start(story, places)
    at = start.step if start is not None else 0
    random = next((one.path for one in places.rng_states if one.step == at), None)
    notes = [*about, *advice.notes]
    if advice.action == "skip":
        notes += [*([positions.note] if positions.note else []), *_windows(positions)]
        notes += [*([OWN_BATCHES] if method_of(run) == "skip_update" else []), PALLIATIVE]
    return ReplayConfig(
        checkpoint=None if start is None else start.path,
        resume=start is not None,
        skip_batches=[batch.index for batch in batches],
        loader=facts.count(run, "smoke.training_loader") or 0,
        method=method_of(run),
        action=advice.action,
        cause=None if story.cause is None else str(story.cause),
        onset=story.onset,
        rewind_to_step=at,
        rewind_to_batch=_first_batch(positions, at),
        rng_state=random,
        reason=advice.reason,
        notes=notes,
        steps=list(advice.steps),
        batches=batches,
        source=source,
        commands=[] if advice.action == "fix" else [f"trainscope smoke --replay {shlex.quote(file)} -- COMMAND"],
    )


def method_of(run: Run) -> Method:
    """Return how batches of this run can be left out: a recorded script without a loader is told by its record."""
    return "skip_update" if run.config.get("smoke.data_loader") is False else "drop_batch"


def _advise(run: Run, findings: Sequence[Finding], story: Story, stories: Sequence[Story]) -> _Advice:
    """Decide by the cause whether skipping can help."""
    bad = sorted({step for one in stories if one.cause is Cause.DATA for step in _bad_steps(findings, one)})
    if story.cause is Cause.DATA and bad:
        many = len(bad) > 1
        which = f"the batches of steps {ranges(bad)} are" if many else f"the batch of step {bad[0]} is"
        return _Advice(
            "skip",
            f"{which} bad by {'themselves: skip those' if many else 'itself: skip it'} and nothing else",
            tuple(bad),
            frozenset(bad),
        )
    title = f": {story.explanations[0].title}" if story.explanations else ""
    signs = {sign.detector for sign in story.signs}
    if signs & _NAN and story.cause in (Cause.NUMERICS, None):
        return _Advice(
            "rerun",
            f"the run is not finite from step {story.onset} on and {_seen(run)}: run the same steps again, "
            "skipping nothing; finite numbers then mean a fault of the hardware, the same ones a fault of the numerics",
            notes=(
                "if it happens again: a lower loss scale, bf16 or a bound helps against overflow, other data does not",
            ),
        )
    if story.cause not in (Cause.OPTIMIZER, Cause.DATA, None) or signs & _CODE:
        return _Advice("fix", f"do not skip data: the cause is {_named(story.cause)}{title}; fix it and train again")
    return _range(run, story)


def _range(run: Run, story: Story) -> _Advice:
    last = min(max(story.onset + AFTER, story.end + 1), story.onset + AFTER_AT_MOST)
    # Batches behind the last step are others already, and the loader may have none.
    end = last if run.last_step is None else min(last, run.last_step + 1)
    steps = tuple(range(max(run.first_step or 0, story.onset - BEFORE), end))
    if run.last_step is not None and len(steps) > run.last_step - (run.first_step or 0):
        return _Advice(
            "fix",
            f"do not skip data: {_seen(run)}, nothing says which is at fault, and the steps around the first sign at "
            f"step {story.onset} are all that this run has; fix what its findings name, or record a longer run",
        )
    led = "the optimizer's state leads" if story.cause is Cause.OPTIMIZER else "nothing else explains it"
    fixes = [
        f"rather than skipping: {f[:1].lower()}{f[1:].rstrip('.')}" for e in story.explanations[:1] for f in e.fixes[:2]
    ]
    if story.cause is Cause.DATA:
        led = "which of them is at fault is a guess"
        fixes = [f"look at the batch of step {story.onset} first: if it is bad, leave out that one and nothing else"]
    return _Advice(
        "skip",
        f"{_seen(run)} and {led}: skip the batches of steps {ranges(steps)}, those before, during and after the first "
        f"sign at step {story.onset}, so that the state meets others (as PaLM did with 200 to 500 batches)",
        steps,
        notes=(
            *fixes,
            *([f"the run ends at step {end - 1}: what comes behind it is not skipped"] if end < last else []),
        ),
    )


def _seen(run: Run) -> str:
    """Return what is known of a run's batches, none of which is named as bad."""
    judged = run.get("batch/token_entropy") is not None or run.get("batch/mean") is not None
    return "its batches look like the others" if judged else "its batches were not recorded"


def _named(cause: Cause | None) -> str:
    words = {
        Cause.SCHEDULE: "the learning rate",
        Cause.STRUCTURE: "the code",
        Cause.ROUTING: "the routing",
        Cause.GENERALIZATION: "overfitting",
        Cause.OPTIMIZER: "how the optimizer is used or set",
        Cause.NUMERICS: "the numerics",
    }
    return words.get(cause, "not known") if cause is not None else "not known"


def _bad_steps(findings: Sequence[Finding], story: Story) -> set[int]:
    """Return the steps with bad batches in a story: those the detector names, else those the story suspects."""
    named: set[int] = set()
    for finding in findings:
        if finding.detector == "bad_batch" and finding.start_step is not None and finding.start_step <= story.end:
            named |= {step for step in numbers(str(finding.evidence["steps"])) if step >= story.onset - 1}
    return named or set(story.suspects)


def _batches(positions: Positions, advice: _Advice) -> list[Batch]:
    return [
        Batch(index=position, step=step, hash=positions.hashes.get(step), is_bad=step in advice.bad)
        for position, step in positions.of_steps(advice.steps)
    ]


def _windows(positions: Positions) -> list[str]:
    if positions.per_step == 1:
        return []
    return [
        f"a step has {positions.per_step} batches and all of them are skipped, so that every other step gets "
        "the batches it had"
    ]


def _start(story: Story, places: Places) -> tuple[Checkpoint | None, list[str]]:
    """Return the checkpoint to rewind to, and what to say about it."""
    found = last_before(places.checkpoints, story.onset - LEAD)
    if found is not None:
        return found, []
    near = last_before(places.checkpoints, story.onset - 1)
    if near is not None:
        ahead = story.onset - near.step
        said = f"the only checkpoint before the incident is {ahead} steps before it: less than the {LEAD} that are safe"
        return None, [f"{said}; begin anew, or try {near.path}"]
    what = f"no checkpoint before step {story.onset}" if places.checkpoints else "no checkpoint"
    return None, [f"{what} in {places.looked_in}: begin anew, or name its folder with --checkpoints"]


def _first_batch(positions: Positions, done: int) -> int:
    """Return the position of the first batch after so many optimizer steps."""
    return positions.of_step(done + positions.base).start if done else 0
