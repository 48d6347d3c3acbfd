"""The points behind what a document says."""

from __future__ import annotations

from trainscope.core.run import Run, Series
from trainscope.report.document import FindingEntry
from trainscope.report.text import well_formed


def series_called(run: Run, name: str) -> Series | None:
    """Return the run's series that the document calls `name`, None if it has no points."""
    found = run.get(name)
    if found is not None:
        return found
    # A document holds no lone surrogates, a log may.
    return next((s for s in run.series.values() if len(s) and well_formed(s.name) == name), None)


def series_of(finding: FindingEntry, run: Run) -> Series | None:
    """Return the series that a finding is about, None if it is about none or its points are not at hand."""
    if finding.metric is None:
        return None
    if finding.layer is None:
        return series_called(run, finding.metric)
    table = run.layers
    if table is None or finding.metric not in table.metrics() or finding.layer not in table.layers():
        return None
    found = table.series(finding.layer, finding.metric)
    return found if len(found) else None
