"""The report as one HTML file: no script, no network, light and dark, wide and narrow, screen and paper."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from trainscope.core.run import Run
from trainscope.report import gate
from trainscope.report.chapters import Chapter, chapters
from trainscope.report.document import Document, FindingEntry, Metric, RunEntry
from trainscope.report.panels import Panels, panels_for
from trainscope.report.text import figure, label, plural, prose
from trainscope.report.tiles import Tile, headline, tiles_for

if TYPE_CHECKING:
    from jinja2 import Environment

COLOURS = "colours.css"
"""Of all pages, those of the site too."""
WORDS: Mapping[str, str] = {"pass": "Pass", "fail": "Fail", "error": "Cannot judge", "not_gated": "Not gated"}


@dataclass(frozen=True, slots=True)
class RunView:
    """What the template shows of one run."""

    run: RunEntry
    counts: tuple[tuple[str, int], ...]
    """Findings by severity."""
    headline: Metric | None
    tiles: tuple[Tile, ...]
    panels: Panels | None
    """None where the points are not at hand."""
    chapters: tuple[Chapter, ...]
    """Why it broke."""
    judged: str
    """How much stands behind "no findings"."""


def render(document: Document, runs: Mapping[str, Run]) -> str:
    """Return the report as one self-contained HTML page.

    Parameters
    ----------
    document : Document
    runs : mapping of run id to Run
        For the charts; a run that is not there is shown without.
    """
    env = environment()
    css = stylesheet(env, "report.css")
    # The policy allows this one style sheet, by its hash, and nothing else: no script, no request.
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    return env.get_template("report.html.j2").render(
        doc=document,
        views=[_view(entry, runs.get(entry.id)) for entry in document.runs],
        words=WORDS,
        status=gate.headline(document),
        css=trusted(css),
        css_hash=digest,
    )


def _view(entry: RunEntry, run: Run | None) -> RunView:
    counts = gate.count(entry.findings)
    skipped = f", {plural(len(entry.skipped), 'detector')} skipped" if entry.skipped else ""
    return RunView(
        run=entry,
        counts=(("error", counts.error), ("warning", counts.warning), ("info", counts.info)),
        headline=headline(entry),
        tiles=tiles_for(entry),
        panels=None if run is None else panels_for(entry, run),
        chapters=tuple(chapters(entry)),
        judged=f"{plural(len(entry.judged), 'detector')} ran{skipped}",
    )


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Return what fills the templates: every string is escaped, every name must be known."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    env = Environment(
        loader=PackageLoader("trainscope.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    env.filters.update(figure=figure, label=label, prose=prose, px=_px, where=where, sentence=sentence)
    return env


def stylesheet(env: Environment, *names: str) -> str:
    """Return style sheets of ours as they are, the colours first."""
    assert env.loader is not None
    return "".join(env.loader.get_source(env, name)[0] for name in (COLOURS, *names))


def trusted(css: str) -> str:
    """Mark our own style sheet as one that is not to be escaped."""
    from markupsafe import Markup

    return Markup(css)


def _px(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def sentence(text: str) -> str:
    """Return a clause as a sentence."""
    return f"{text[:1].upper()}{text[1:]}."


def where(finding: FindingEntry, x_axis: str) -> str:
    """Return what a finding is about: metric, layer and steps, each after a dot."""
    parts = [label(part) for part in (finding.metric, finding.layer) if part is not None]
    start, end = finding.start_step, finding.end_step
    if start is not None:
        parts.append(f"{x_axis} {start}" if end in (None, start) else f"{x_axis}s {start} to {end}")
    return "".join(f" · {part}" for part in parts)
