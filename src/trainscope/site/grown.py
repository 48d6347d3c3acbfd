"""Tells a log that has grown since the last build, whose run takes the place of the one before, from a new run."""

from __future__ import annotations

from collections.abc import Mapping

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
    """Tell whether a run is the beginning of another: same name and start, and no metric with more points."""
    one, two = old.entry, new.entry
    if (one.name, one.source, one.steps.first) != (two.name, two.source, two.steps.first):
        return False
    later = {metric.name: metric for metric in two.metrics}
    shared = [(metric, later[metric.name]) for metric in one.metrics if metric.name in later]
    return bool(shared) and all(a.first == b.first and a.count <= b.count for a, b in shared)
