"""What an archived run keeps: its findings and the outline of its curves, a tenth of a page's bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trainscope.site.bundle import Curve, Record

MAX_CURVES = 4
ROWS = 100
"""Rows of an archived curve."""
MAX_METRICS = MAX_SETTINGS = 60


def archived(record: Record) -> Record:
    """Return a record reduced for the archive; one that is archived already comes back as it is.

    Maps, histograms, close looks and the steps around the onset go; least and greatest values stay exact.
    """
    if record.archived:
        return record
    entry = record.entry
    shorter = entry.model_copy(
        update={
            "metrics": entry.metrics[:MAX_METRICS],
            "config": dict(list(entry.config.items())[:MAX_SETTINGS]),
            "skipped": [],
        }
    )
    return Record(
        version=record.version,
        tool=record.tool,
        entry=shorter,
        verdict=record.verdict,
        about=record.about,
        status=record.status,
        summary=record.summary,
        main_incident=record.main_incident,
        curves=[_outline(curve) for curve in record.curves[:MAX_CURVES]],
        left_out=record.left_out,
        archived=True,
    )


def _outline(curve: Curve) -> Curve:
    """Return a curve in fewer rows, each with the extremes of those it stands for."""
    if len(curve.step) <= 2 * ROWS:
        return curve
    size = math.ceil(len(curve.step) / ROWS)
    groups = [slice(at, at + size) for at in range(0, len(curve.step), size)]
    low, high = curve.low or curve.middle, curve.high or curve.middle
    return curve.model_copy(
        update={
            "step": [curve.step[g][len(curve.step[g]) // 2] for g in groups],
            "middle": [_middle(curve.middle[g]) for g in groups],
            "low": [min((v for v in low[g] if v is not None), default=None) for g in groups],
            "high": [max((v for v in high[g] if v is not None), default=None) for g in groups],
            "broken": curve.broken[:ROWS],
        }
    )


def _middle(values: Sequence[float | None]) -> float | None:
    some = sorted(v for v in values if v is not None)
    return some[(len(some) - 1) // 2] if some else None
