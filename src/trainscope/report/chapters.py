"""What every output shows of a story: the cause, the signs in order, what is missing and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainscope.report.document import Incident, RunEntry, StoryEvent
from trainscope.report.text import label, plural, prose

MOST_EVENTS = 8
"""Signs of one incident that are shown; the document has all."""
MOST_FIXES = 3


@dataclass(frozen=True, slots=True)
class Chapter:
    """One incident, ready to be laid out. All texts are printable."""

    incident: Incident
    cause: str
    """``data, 81 %``; empty where the signs do not say."""
    title: str
    place: str
    """Where it showed first, and how long before the loss; empty where nothing is known."""
    events: tuple[tuple[str, str, str], ...]
    """(step, stage, sentence)"""
    more: int
    """Further signs that are not shown."""
    others: tuple[str, ...]
    """Less likely explanations."""
    missing: str
    fixes: tuple[str, ...]


def chapters(run: RunEntry) -> list[Chapter]:
    """Return the incidents that say more than the findings do: a cause, or an order of several signs."""
    found = []
    for number, incident in enumerate(run.incidents, start=1):
        events = [e for e in run.story if e.incident == number]
        if incident.explanations or len({e.signal for e in events}) > 1:
            found.append(_chapter(incident, events, run.x_axis))
    return found


def _chapter(incident: Incident, events: Sequence[StoryEvent], x: str) -> Chapter:
    top = incident.explanations[0] if incident.explanations else None
    shown = _chosen(events)
    missing = dict.fromkeys((*(top.missing if top is not None else ()), *incident.missing))
    return Chapter(
        incident=incident,
        cause="" if top is None else f"{top.cause}, {percent(top.weight)}",
        title="the signs do not say" if top is None else prose(top.title),
        place=_place(incident, x),
        events=tuple((str(e.step), e.stage or "", _sentence(e)) for e in shown),
        more=len(events) - len(shown),
        others=tuple(f"{e.cause}, {percent(e.weight)}: {prose(e.title)}" for e in incident.explanations[1:]),
        missing="; ".join(prose(m) for m in missing),
        fixes=tuple(prose(f) for f in top.fixes[:MOST_FIXES]) if top is not None else (),
    )


def _sentence(event: StoryEvent) -> str:
    """Return what happened, without the step that stands beside it."""
    return prose((event.text or event.event).removesuffix(f" at step {event.step}"))


def _chosen(events: Sequence[StoryEvent]) -> list[StoryEvent]:
    """Return the first sign of each kind; the first few kinds, and the first of the loss always."""
    first: dict[str, StoryEvent] = {}
    for event in events:
        first.setdefault(event.signal, event)
    chosen = list(first.values())
    kept = chosen[:MOST_EVENTS]
    loss = next((e for e in chosen if e.stage == "loss"), None)
    if loss is not None and loss not in kept:
        kept[-1] = loss
    return kept


def _place(incident: Incident, x: str) -> str:
    where = incident.parameter or incident.layer
    said = [] if where is None else [f"first in {label(where)}"]
    if incident.lead_steps is not None:
        late = "at once" if incident.lead_steps <= 0 else f"{plural(incident.lead_steps, x)} after the first sign"
        said.append(f"the loss shows it {late}")
    return ", ".join(said)


def percent(weight: float) -> str:
    """Return a share as a whole percentage."""
    return f"{100 * weight:.0f} %"
