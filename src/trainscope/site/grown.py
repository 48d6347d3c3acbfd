"""Tells a log that has grown since the last build, whose run takes the place of the one before, from a new run."""

from __future__ import annotations

from collections.abc import Mapping

from trainscope.report.document import Metric
from trainscope.site.bundle import Record
from trainscope.site.inputs import Input


def superseded(
    before: Mapping[str, Input], now: Mapping[str, Input], kept: Mapping[str, Record], found: Mapping[str, Record]
) -> list[str]:
    """Return the runs that are earlier states of runs just read from the same logs.

    Parameters
    ----------
    before, now : mapping of name to Input
        What each log held at the last build, and holds now.
    kept : mapping of id to Record
        Runs of the site that no log holds any more.
    found : mapping of id to Record
        Runs that the logs hold now.
    """
    pairs = ((old, new) for name, one in now.items() if name in before for old in before[name].runs for new in one.runs)
    return sorted({old for old, new in pairs if old in kept and new in found and _is_earlier(kept[old], found[new])})


def _is_earlier(old: Record, new: Record) -> bool:
    """Tell whether a run is the beginning of another: same name and start, fewer steps, nothing taken back."""
    one, two = old.entry, new.entry
    if (one.name, one.source, one.steps.first) != (two.name, two.source, two.steps.first):
        return False
    later = {metric.name: metric for metric in two.metrics}
    shared = [(metric, later[metric.name]) for metric in one.metrics if metric.name in later]
    return one.steps.count < two.steps.count and bool(shared) and all(_is_more(a, b) for a, b in shared)


def _is_more(one: Metric, two: Metric) -> bool:
    """Tell whether a metric may have got from the one to the other by points that came after it."""
    within = [(two.min, one.min), (one.max, two.max)]
    is_wider = all(
        low <= high for low, high in within if isinstance(low, int | float) and isinstance(high, int | float)
    )
    return one.first == two.first and one.count <= two.count and one.non_finite <= two.non_finite and is_wider
