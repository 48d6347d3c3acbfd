"""What an archived run keeps: its findings and the outline of its curves, a tenth of a page's bytes."""

from __future__ import annotations

from trainscope.site.bundle import Record
from trainscope.site.curves import outlined

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
        curves=[outlined(curve, ROWS) for curve in record.curves[:MAX_CURVES]],
        left_out=record.left_out,
        archived=True,
    )
