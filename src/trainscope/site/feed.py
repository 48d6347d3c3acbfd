"""What other programs follow: a feed of findings, a badge of the newest run."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from email.utils import format_datetime

from trainscope.report.gate import count, describe
from trainscope.report.text import label, printable, shorten
from trainscope.site.bundle import Record
from trainscope.site.index import row_of

MAX_ITEMS = 60
COLORS = {"pass": "#0a7350", "fail": "#b92d25", "error": "#955800"}


@dataclass(frozen=True, slots=True)
class Item:
    """One finding in the feed."""

    title: str
    message: str
    href: str
    guid: str
    """The same for the same finding of the same run, whenever the feed is made."""
    severity: str
    date: str | None
    """When the run's log ends, which is the latest that anybody knows."""


def items_of(records: Sequence[Record]) -> list[Item]:
    """Return the feed of some runs, in their order; informations are left out, and so is what a baseline knew."""
    items = []
    for record in records:
        ended = record.about.ended
        moment = None if ended is None else datetime.datetime.fromtimestamp(ended, datetime.UTC)
        page = row_of(record).href
        for number, finding in enumerate(record.entry.findings, 1):
            if finding.severity == "info" or finding.status == "known":
                continue
            items.append(
                Item(
                    title=f"{label(record.entry.name, 80)}: {printable(finding.title)}",
                    message=shorten(printable(finding.message), 800),
                    href=page if record.archived else f"{page}#finding-{number}",
                    guid=f"trainscope:{record.id}:{finding.fingerprint}:{finding.occurrence}",
                    severity=finding.severity,
                    date=None if moment is None else format_datetime(moment),
                )
            )
            if len(items) >= MAX_ITEMS:
                return items
    return items


def badge_of(record: Record | None) -> dict[str, object]:
    """Return what a badge says of a run; without one, that there is none."""
    if record is None:
        return _sized("training", "no runs", "#5c6673")
    status = record.verdict.status
    text = describe(count(record.entry.findings)) if record.entry.findings else "healthy"
    return _sized("training", text, COLORS[status])


def _sized(name: str, text: str, color: str) -> dict[str, object]:
    # About the width of an 11-pixel letter; textLength makes the text fit to the pixel.
    left, right = (round(6.4 * len(t)) + 12 for t in (name, text))
    return {"name": name, "text": text, "color": color, "left": left, "right": right}
