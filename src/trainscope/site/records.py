"""Records of runs that were just judged, for a site that is built later or elsewhere."""

from __future__ import annotations

from pathlib import Path

from trainscope.core.settings import Settings
from trainscope.report.cases import case_of
from trainscope.report.pipeline import Analysis
from trainscope.site import bundle
from trainscope.site.bundle import Record
from trainscope.site.collect import record_of
from trainscope.site.plans import plan_for
from trainscope.store import stream


def records_of(analysis: Analysis, settings: Settings) -> list[Record]:
    """Return the record of each run of an analysis, in its order."""
    found = []
    for entry, one in zip(analysis.document.runs, analysis.alone, strict=True):
        case = case_of(one)
        found.append(record_of(case, entry, settings, plan_for(case, entry)))
    return found


def write_records(records: list[Record], folder: Path) -> None:
    """Write records to ``folder/ID/record.js``; those of an earlier call give way.

    Raises
    ------
    StoreError
        If they cannot be written.
    """
    with stream.writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob(f"*/{bundle.NAME}"):
            if bundle.is_record(old):
                old.unlink()
                if not any(old.parent.iterdir()):
                    old.parent.rmdir()
        for record in records:
            (folder / record.id).mkdir(exist_ok=True)
            (folder / record.id / bundle.NAME).write_text(bundle.to_text(record), encoding="ascii", newline="\n")
