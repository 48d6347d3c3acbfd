"""From the stories of a run to the parts of the document."""

from __future__ import annotations

from collections.abc import Sequence

from trainscope.diagnosis.evidence import said
from trainscope.diagnosis.signs import Explanation, Sign, Story
from trainscope.report.axis_words import in_words
from trainscope.report.number import number
from trainscope.report.story_document import ExplanationEntry, Incident, StoryEvent
from trainscope.report.text import well_formed


def told(stories: Sequence[Story], x_axis: str) -> tuple[list[StoryEvent], list[Incident]]:
    """Return the events and incidents of a run's stories, in the words of its axis."""
    events = [_event(sign, story, i, x_axis) for i, story in enumerate(stories, start=1) for sign in story.signs]
    return events, [_incident(story, x_axis) for story in stories]


def _event(sign: Sign, story: Story, incident: int, x_axis: str) -> StoryEvent:
    ahead = None if story.loss_step is None else story.loss_step - sign.step
    return StoryEvent.model_validate(
        {
            "step": sign.step,
            "signal": well_formed(sign.signal),
            "where": _text(sign.where),
            "event": in_words(sign.event, x_axis),
            "lead_steps": ahead if ahead is not None and ahead >= 0 else None,
            "text": in_words(said(sign), x_axis),
            "stage": sign.stage.name.lower(),
            "end_step": sign.end_step,
            "score": number(sign.score),
            "detector": sign.detector,
            "incident": incident,
        }
    )


def _incident(story: Story, x_axis: str) -> Incident:
    return Incident.model_validate(
        {
            "onset": story.onset,
            "end": story.end,
            "loss_step": story.loss_step,
            "lead_steps": story.lead,
            "layer": _text(story.layer),
            "parameter": _text(story.parameter),
            "cause": story.cause,
            "explanations": [_explanation(e, x_axis) for e in story.explanations],
            "suspects": list(story.suspects),
            "missing": [well_formed(m) for m in story.missing],
        }
    )


def _explanation(one: Explanation, x_axis: str) -> ExplanationEntry:
    return ExplanationEntry.model_validate(
        {
            "cause": one.cause.value,
            "title": in_words(one.title, x_axis),
            "weight": one.weight,
            "because": [in_words(b, x_axis) for b in one.because],
            "missing": [well_formed(m) for m in one.missing],
            "layer": _text(one.layer),
            "parameter": _text(one.parameter),
            "fixes": [in_words(f, x_axis) for f in one.fixes],
        }
    )


def _text(value: str | None) -> str | None:
    return None if value is None else well_formed(value)
