"""Wording that the case files share, whatever their form."""

from __future__ import annotations

from collections.abc import Mapping

from trainscope.core.positions import ranges
from trainscope.diagnosis.configuration import is_chosen
from trainscope.report.case_document import (
    BandEntry,
    ClusterEntry,
    LeadEntry,
    ReplayEntry,
    TraitEntry,
    WeightChangeEntry,
)
from trainscope.report.document import RunEntry
from trainscope.report.part import Number, Scalar
from trainscope.report.story_document import Incident, StoryEvent
from trainscope.report.text import figure, label, plural

STAGES: Mapping[str, str] = {
    "data": "data",
    "schedule": "schedule",
    "update": "update",
    "gradient": "gradient",
    "activation": "activation",
    "loss": "loss",
    "eval": "evaluation",
}
"""Stage of a training step to the word for it, in the order in which they cause each other."""
ACTIONS: Mapping[str, str] = {
    "skip": "Skip batches",
    "fix": "Fix the cause; skip no data",
    "rerun": "Run the same steps again",
}
"""What a plan to train again comes to."""
MOST_LAYERS = 10
"""Rows of a change of weights inside a longer report."""
PLACES = (-0.5, -1 / 6, 0.0, 1 / 6, 0.5, 1.0)
"""Where a band is read off in a table, as shares of its half width."""


def lead_words(lead: LeadEntry | None) -> str:
    """Return how early the first sign came."""
    if lead is None:
        return "the loss of no member shows it"
    seen = f"in {plural(lead.runs, 'run')} whose loss shows it"
    if lead.least == lead.most == 0:
        return f"at the same step as in the loss, {seen}"
    if lead.least == lead.most:
        return f"{plural(lead.least, 'step')} before the loss, {seen}"
    return f"{steps(lead.median)} before the loss (median; {lead.least} to {lead.most}, {seen})"


def steps(n: Number) -> str:
    """Return ``1 step``, ``2.5 steps``."""
    return f"{figure(n)} step{'' if n == 1 else 's'}"


def lead_short(lead: LeadEntry | None) -> str:
    """Return the lead as a cell of a table."""
    if lead is None:
        return "-"
    return figure(lead.median) + (f" ({lead.least} to {lead.most})" if lead.least != lead.most else "")


def probability(p: float) -> str:
    """Return a p-value: ``0.03``, ``<0.0001``."""
    return "<0.0001" if p < 1e-4 else f"{p:.2g}"


def setting(value: Scalar) -> str:
    """Return the value of a setting as one would write it; nothing for one that is missing."""
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)


_EMPTY = (None, "", "[]", "{}")


def settings_shown(run: RunEntry) -> tuple[list[tuple[str, str]], int]:
    """Return the settings that someone chose, and how many facts a recorder found out beside them."""
    chosen = {key: value for key, value in run.config.items() if is_chosen(key)}
    shown = [(key.removeprefix("smoke."), setting(value)) for key, value in chosen.items() if value not in _EMPTY]
    return shown, len(run.config) - len(shown)


def trait_words(trait: TraitEntry) -> tuple[str, str, str]:
    """Return a trait in three parts: key, relation, value."""
    return trait.key, trait.relation, setting(trait.value)


def causes_words(cluster: ClusterEntry) -> str:
    """Return the likely causes with how many members each has."""
    if not cluster.causes:
        return "not told by the signs"
    return ", ".join(f"{cause} ({n} of {len(cluster.members)})" for cause, n in cluster.causes.items())


def shares_words(cluster: ClusterEntry, titles: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the signals in their usual order, each with the share of members that showed it."""
    ordered = [*cluster.signals, *(s for s in cluster.shares if s not in cluster.signals)]
    return [(titles.get(s, s), f"{cluster.shares[s]:.0%}") for s in ordered if s in cluster.shares]


def band_rows(band: BandEntry) -> list[tuple[int, Number | None, Number | None, Number | None, int]]:
    """Return offset, median, quartiles and runs at a few places of a band."""
    if not band.offset:
        return []
    middle = len(band.offset) // 2
    places = [middle + round(share * middle) for share in PLACES]
    return [(band.offset[i], band.median[i], band.low[i], band.high[i], band.alive[i]) for i in places]


def replay_words(replay: ReplayEntry) -> list[str]:
    """Return a plan to train again, a sentence each."""
    if replay.checkpoint is None:
        begin = "Begin at the start: there is no checkpoint to go back to."
    else:
        begin = f"Begin at {label(replay.checkpoint)}, step {replay.rewind_to_step}."
    said = [f"{replay.reason[:1].upper()}{replay.reason[1:]}.", begin]
    if replay.skip_batches:
        said.append(f"Leave out {plural(len(replay.skip_batches), 'batch', 'batches')}: {ranges(replay.skip_batches)}.")
    return said


def events_of(run: RunEntry, number: int) -> list[StoryEvent]:
    """Return the signs of one incident, in order; incidents are numbered from 1."""
    return [event for event in run.story if event.incident == number]


def where_first(incident: Incident) -> str | None:
    """Return the parameter or layer that showed it first."""
    return incident.parameter or incident.layer


def change_words(change: WeightChangeEntry) -> str:
    """Return which histograms were compared, in a sentence."""
    rows = [row for row in change.layers if row.divergence is not None]
    if not rows:
        return f"No number: {change.reason}."
    spans = sorted({(row.first, row.last) for row in rows})
    first, last = spans[0]
    asked = f"steps {change.first} to {change.last}"
    if len(spans) > 1:
        return f"Weight histograms nearest to {asked}; divergences in nats, largest first."
    if (first, last) == (change.first, change.last):
        return f"Weight histograms of steps {first} and {last}; divergences in nats, largest first."
    return f"Histograms of steps {first} and {last}, the nearest around {asked}; divergences in nats, largest first."


def without_number(change: WeightChangeEntry) -> list[str]:
    """Return the reasons why some parameters have no number, each with how many it is about."""
    reasons: dict[str, list[str]] = {}
    for row in change.layers:
        if row.divergence is None:
            reasons.setdefault(row.reason or "", []).append(row.layer)
    return [f"{plural(len(names), 'parameter')} without a number: {reason}" for reason, names in reasons.items()]


def grown(ratio: Number | None) -> str:
    """Return a ratio as a factor: ``x3.2``; ``-`` for none."""
    return "-" if ratio is None else f"x{figure(ratio)}"


def broke_at(
    x: str, onset: int, title: str | None, lead: int | None, *, is_error: bool = True, in_loss: bool = False
) -> str:
    """Return an incident in a sentence or two: where it began, its likeliest cause, and how long before the loss.

    Parameters
    ----------
    is_error : bool
        Whether anything of it is an error; of warnings alone nobody says that the run broke.
    in_loss : bool
        Whether a sign of it is about the loss: one that says no step has no lead.
    """
    said = f"{'Broke' if is_error else 'Trouble'} at {x} {onset}"
    if title is not None:
        said += f": {title}"
    if lead is None:
        return f"{said}. {'The loss shows it' if in_loss else 'The loss does not show it'}."
    if lead == 0:
        return f"{said}. The loss showed it at once."
    return f"{said}. The first sign came {plural(lead, x)} before the loss showed it."
