"""An incident as a timeline: which sign came first, how long before the loss, and what explains them best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trainscope.report.axis import step_axis
from trainscope.report.case_text import broke_at
from trainscope.report.document import Incident, StoryEvent
from trainscope.report.story_document import ExplanationEntry
from trainscope.report.text import label
from trainscope.site.bundle import Record

MAX_SIGNS = 16
"""Rows of a timeline: the first sign of each signal. The others are listed under it."""
MAX_LISTED = 60


@dataclass(frozen=True, slots=True)
class SignRow:
    """One sign on the timeline, places in percent of its width."""

    name: str
    where: str
    event: str
    stage: str
    step: int
    x: float
    width: float
    lag: str
    """Steps against the loss: ``−310``; empty where the loss shows nothing."""
    goes_on: bool
    """Lasts beyond the right edge."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One explanation, with its weight as a bar."""

    entry: ExplanationEntry
    percent: int


@dataclass(frozen=True, slots=True)
class IncidentView:
    """What the page shows of one incident."""

    entry: Incident
    headline: str
    rows: tuple[SignRow, ...]
    others: tuple[str, ...]
    """Signs of the same signals elsewhere, as sentences."""
    more: int
    loss_x: float | None
    ticks: tuple[tuple[float, str], ...]
    causes: tuple[Cause, ...]
    suspects: str


def incidents_of(record: Record) -> tuple[IncidentView, ...]:
    """Return the incidents of a run, the main one first, then by onset."""
    entry = record.entry
    numbered = list(enumerate(entry.incidents))
    ranked = sorted(numbered, key=lambda pair: (pair[0] != record.main_incident, pair[1].onset))
    is_error = any(finding.severity == "error" for finding in entry.findings)
    return tuple(
        _view(one, [e for e in entry.story if e.incident == n + 1], entry.x_axis, is_error=is_error)
        for n, one in ranked
    )


def _view(entry: Incident, events: Sequence[StoryEvent], x_name: str, *, is_error: bool) -> IncidentView:
    first_of: dict[str, StoryEvent] = {}
    for event in events:
        first_of.setdefault(event.signal, event)
    shown = list(first_of.values())[:MAX_SIGNS]
    others = [e for e in events if not any(e is s for s in shown)]
    steps = [s.step for s in shown] + ([entry.loss_step] if entry.loss_step is not None else [])
    first, last = min(steps, default=entry.onset), max(steps, default=entry.onset)
    room = max(last - first, 4)
    low, high = first - room * 0.06, last + room * 0.22
    axis = step_axis(first, max(int(high), first + 1), 7)

    def place(step: float) -> float:
        return round(min(max((step - low) / (high - low) * 100, 0.0), 100.0), 2)

    ticks = tuple((place(t), text) for t, text in zip(axis.ticks, axis.labels, strict=True) if low <= t <= high)
    title = entry.explanations[0].title if entry.explanations else None
    in_loss = any(e.stage == "loss" for e in events)
    return IncidentView(
        entry=entry,
        headline=broke_at(x_name, entry.onset, title, entry.lead_steps, is_error=is_error, in_loss=in_loss),
        rows=tuple(_row(s, entry.loss_step, place, high) for s in shown),
        others=tuple(f"{x_name} {e.step}: {e.text or e.event}" for e in others[:MAX_LISTED]),
        more=len(others),
        loss_x=None if entry.loss_step is None else place(entry.loss_step),
        ticks=ticks,
        causes=tuple(Cause(e, round(100 * e.weight)) for e in entry.explanations[:4]),
        suspects=", ".join(str(s) for s in entry.suspects[:20])
        + (f" and {len(entry.suspects) - 20} more" if len(entry.suspects) > 20 else ""),
    )


def _row(sign: StoryEvent, loss_step: int | None, place: Callable[[float], float], high: float) -> SignRow:
    end = sign.end_step if sign.end_step is not None else sign.step
    lag = "" if loss_step is None else f"{sign.step - loss_step:+d}".replace("-", "\u2212").replace("+0", "0")
    x = place(sign.step)
    return SignRow(
        name=label(sign.signal, 60),
        where="" if sign.where is None else label(sign.where, 60),
        event=sign.event,
        stage=sign.stage or "loss",
        step=sign.step,
        x=x,
        width=round(max(place(end) - x, 0.6), 2),
        lag=lag,
        goes_on=end > high,
    )
