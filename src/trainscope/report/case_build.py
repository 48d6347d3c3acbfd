"""From stories and changes of weights to the entries of a case file, field by field."""

from __future__ import annotations

import math

from trainscope.core.run import Run
from trainscope.diagnosis.case import Case
from trainscope.diagnosis.signs import Stage, Story
from trainscope.diagnosis.weight_change import LayerChange, WeightChange, between
from trainscope.replay.positions import why_unplanned
from trainscope.report.axis_words import in_words
from trainscope.report.case_document import CaseEntry, LayerChangeEntry, ReplayEntry, Status, WeightChangeEntry
from trainscope.report.case_text import broke_at
from trainscope.report.document import RunEntry
from trainscope.report.gate import count
from trainscope.report.number import number
from trainscope.report.part import Number
from trainscope.report.text import plural, well_formed


def status_of(case: Case) -> Status:
    """Return what is known of a run."""
    if case.grave:
        return "broken"
    return "stable" if case.is_stable else "unjudged"


def case_entry(case: Case, run: RunEntry, replay: ReplayEntry | None = None, ranks: str | None = None) -> CaseEntry:
    """Return one run in full; the weights are compared only where an incident asks for it."""
    change = None if case.main is None else around(case.run, case.main)
    return CaseEntry(
        status=status_of(case),
        summary=_summary(case, run),
        run=run,
        ranks=ranks,
        counts=count(run.findings),
        main=next((n for n, story in enumerate(case.stories, 1) if story is case.main), None),
        weight_change=None if change is None or case.run.layers is None else change_entry(change),
        replay=replay,
        unknown=_unknown(case, change),
    )


def around(run: Run, story: Story) -> WeightChange:
    """Return the change of the weights from before the onset of a story to when the loss showed it.

    The recorder looks at a step before its update: what step n did shows in the weights of step n + 1.
    """
    return between(run, story.onset - 1, max(story.onset, story.loss_step or story.onset) + 1)


def _summary(case: Case, run: RunEntry) -> str:
    story, x = case.main, run.x_axis
    if story is None:
        if case.grave:
            more = f" and {len(case.grave) - 1} more" if len(case.grave) > 1 else ""
            return f"{well_formed(case.grave[0].title)}{more}; the training itself has no incident."
        if not case.is_stable:
            return "No detector could judge this run."
        return (
            f"Nothing at or above warning: {plural(len(case.judged), 'detector')} judged {plural(run.steps.count, x)}."
        )
    title = in_words(story.explanations[0].title, x) if story.explanations else None
    is_error = any(f.severity == "error" for f in run.findings)
    in_loss = any(s.stage is Stage.LOSS for s in story.signs)
    return broke_at(x, story.onset, title, story.lead, is_error=is_error, in_loss=in_loss)


def _unknown(case: Case, change: WeightChange | None) -> list[str]:
    found = [text for story in case.stories for text in story.missing]
    if case.run.layers is None:
        found.append("which layer came first: a log has no statistics of layers; record the run")
    elif change is not None and change.reason:
        found.append(f"how far the weights moved: {change.reason}")
    unplanned = why_unplanned(case.run)
    if case.stories and unplanned is not None:
        found.append(f"how to train again: {unplanned}")
    if case.stories and not any(story.explanations for story in case.stories):
        found.append("the cause: the signs that this run shows do not say")
    return list(dict.fromkeys(map(well_formed, found)))


def change_entry(change: WeightChange) -> WeightChangeEntry:
    """Return a change of weights as an entry."""
    return WeightChangeEntry(
        first=change.first,
        last=change.last,
        layers=[_layer(row) for row in change.layers],
        reason=well_formed(change.reason) or None,
    )


def _layer(row: LayerChange) -> LayerChangeEntry:
    return LayerChangeEntry(
        layer=well_formed(row.layer),
        first=row.first,
        last=row.last,
        divergence=optional(row.symmetric),
        forward=optional(row.forward),
        backward=optional(row.backward),
        beyond=row.beyond,
        weight_norm=_pair(row.weight_norm),
        grad_norm=_pair(row.grad_norm),
        grad_ratio=optional(row.grad_ratio),
        reason=well_formed(row.reason) or None,
    )


def optional(value: float | None) -> Number | None:
    """Return a JSON number, None for none and for NaN that stands for none."""
    return None if value is None or math.isnan(value) else number(value)


def _pair(pair: tuple[float, float] | None) -> tuple[Number, Number] | None:
    return None if pair is None else (number(pair[0]), number(pair[1]))
