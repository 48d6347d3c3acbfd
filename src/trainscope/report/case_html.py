"""A case file as one HTML page: no script, no network, light and dark, wide and narrow, screen and paper."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from trainscope.core.run import Run
from trainscope.report import case_text
from trainscope.report.case_charts import Lanes, fate_chart, lanes
from trainscope.report.case_document import CaseEntry, CaseFile, ClusterEntry, WeightChangeEntry
from trainscope.report.charts import Chart
from trainscope.report.html import environment, stylesheet, trusted
from trainscope.report.panels import NARROW, WIDE, Panels, panels_for
from trainscope.report.story_document import Incident, StoryEvent
from trainscope.report.survey_build import TITLES
from trainscope.report.tiles import Tile, tiles_for

if TYPE_CHECKING:
    from jinja2 import Environment

FATE_HEIGHT = 240.0
WORDS: Mapping[str, str] = {"broken": "Broken", "stable": "Stable", "unjudged": "Not judged"}
TROUBLE = "Trouble"
"""The word for a run that has warnings and no error."""
TONES: Mapping[str, str] = {"broken": "fail", "stable": "pass", "unjudged": "error"}


@dataclass(frozen=True, slots=True)
class IncidentView:
    """One incident with its drawing in two widths."""

    entry: Incident
    signs: list[StoryEvent]
    is_main: bool
    wide: Lanes
    narrow: Lanes


@dataclass(frozen=True, slots=True)
class CaseView:
    """What the template shows of one run."""

    entry: CaseEntry
    tiles: tuple[Tile, ...]
    panels: Panels | None
    incidents: tuple[IncidentView, ...]


@dataclass(frozen=True, slots=True)
class ClusterView:
    """One cluster with its band in two widths."""

    entry: ClusterEntry
    wide: Chart | None
    narrow: Chart | None


def render(file: CaseFile, runs: Sequence[Run] = ()) -> str:
    """Return the case file as one self-contained HTML page.

    Parameters
    ----------
    file : CaseFile
    runs : sequence of Run
        The run of a case, for its charts; it is shown without them if it is not there.
    """
    env = _environment()
    css = stylesheet(env, "report.css", "case.css")
    # The policy allows this one style sheet, by its hash, and nothing else: no script, no request.
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    return env.get_template("case.html.j2").render(
        file=file,
        case=None if file.case is None else _case(file.case, runs[0] if runs else None),
        clusters=[] if file.survey is None else [_cluster(c) for c in file.survey.clusters],
        names={} if file.survey is None else {m.id: m for m in file.survey.members},
        words=WORDS,
        trouble=TROUBLE,
        tones=TONES,
        titles=TITLES,
        actions=case_text.ACTIONS,
        most_layers=case_text.MOST_LAYERS,
        css=trusted(css),
        css_hash=digest,
    )


def _case(entry: CaseEntry, run: Run | None) -> CaseView:
    return CaseView(
        entry=entry,
        tiles=tiles_for(entry.run),
        panels=None if run is None else panels_for(entry.run, run),
        incidents=tuple(_incident(incident, number, entry) for number, incident in enumerate(entry.run.incidents, 1)),
    )


def _incident(incident: Incident, number: int, entry: CaseEntry) -> IncidentView:
    signs, x_name = case_text.events_of(entry.run, number), entry.run.x_axis
    wide, narrow = (lanes(incident, signs, width, x_name) for width in (WIDE - 40, NARROW))
    return IncidentView(incident, signs, number == entry.main, wide, narrow)


def _cluster(entry: ClusterEntry) -> ClusterView:
    band = entry.fate
    return ClusterView(entry, fate_chart(band, WIDE, FATE_HEIGHT), fate_chart(band, NARROW, FATE_HEIGHT))


def longest(change: WeightChangeEntry) -> float:
    """Return the largest finite divergence, to which bars are drawn; 1 where there is none."""
    found = [row.divergence for row in change.layers if isinstance(row.divergence, (int, float))]
    return max(found, default=0.0) or 1.0


@lru_cache(maxsize=1)
def _environment() -> Environment:
    env = environment().overlay()
    env.filters = env.filters | {
        "change_words": case_text.change_words,
        "without_number": case_text.without_number,
        "lead_words": case_text.lead_words,
        "lead_short": case_text.lead_short,
        "causes_words": case_text.causes_words,
        "probability": case_text.probability,
        "replay_words": case_text.replay_words,
        "setting": case_text.setting,
        "settings_shown": case_text.settings_shown,
        "grown": case_text.grown,
        "longest": longest,
    }
    return env
