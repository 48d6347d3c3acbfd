"""What the whole site shares: its lists and feeds, its scripts, and how charts get into pages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version

from trainscope import __version__
from trainscope.report.document import ErrorEntry
from trainscope.site import feed, index
from trainscope.site.browser_forms import compare_form, explore_form
from trainscope.site.bundle import Record
from trainscope.site.charts import Chart, Drawing
from trainscope.site.drawing import Drawer, Job
from trainscope.site.files import Memory, SiteFolder
from trainscope.site.survey import cluster_views, survey_of
from trainscope.site.svg import inlined
from trainscope.site.templates import ASSETS, Templates

LISTS = ("index.html", "all.html", "compare.html", "run.html", "runs.js", "runs.json", "feed.xml", "badge.svg")
"""What a site has once, beside its assets."""
MADE = ("forms.js", "vega.js")
"""Scripts that are made of libraries, not of a template."""
WIDTHS = {"": (920, 1080), "-narrow": (280, 330)}
"""Of a curve to explore and of a comparison, on a desk and on a phone, in pixels."""


@dataclass(frozen=True, slots=True)
class Site:
    """What every page knows of its site."""

    title: str
    base_url: str
    version: str


def list_files(
    records: Sequence[Record], errors: Sequence[ErrorEntry], templates: Templates, site: Site, drawer: Drawer
) -> dict[str, str]:
    """Return the list of runs in all its forms, the shared pages, the feed and the badge, by name.

    Raises
    ------
    ConfigError
        If a template of the user's is wrong.
    """
    rows = index.rows_of(records)
    survey = survey_of(records)
    clusters, alone = cluster_views(survey, {row.id: row for row in rows})
    view = index.IndexView(tuple(rows), index.summary_of(rows), tuple(errors), survey, clusters, alone)
    drawings = [(c.chart, d) for c in clusters if c.chart is not None for d in c.chart.drawings]
    svg = drawn_charts(drawings, drawer.draw([svg_job(d) for _, d in drawings]))
    common = {"site": site, "root": ""}
    newest = records[0] if records else None
    return {
        "index.html": templates.render("index.html.j2", index=view, svg=svg, **common),
        "all.html": templates.render("all.html.j2", index=view, **common),
        "compare.html": templates.render("compare.html.j2", **common),
        "run.html": templates.render("archive.html.j2", **common),
        "runs.js": index.runs_script(rows),
        "runs.json": index.runs_json(rows, site.title),
        "feed.xml": templates.render("feed.xml.j2", items=feed.items_of(records), site=site),
        "badge.svg": templates.render("badge.svg.j2", **feed.badge_of(newest)),
    }


def write_assets(folder: SiteFolder, memory: Memory, templates: Templates) -> None:
    """Write the scripts and the style sheet."""
    for name in ASSETS:
        folder.write(f"assets/{name}", templates.asset(name))
    made_by = f"{version('vl-convert-python')} {version('altair')} {__version__}"
    if memory.made_by != made_by or not all(folder.has(f"assets/{name}") for name in MADE):
        # A second or two each, and the same until something is updated.
        folder.write("assets/forms.js", _forms())
        folder.write("assets/vega.js", _vega())
        memory.made_by = made_by


@cache
def _forms() -> str:
    """Return the charts that a browser draws when asked, as one script."""
    forms = {}
    for suffix, (explored, compared) in WIDTHS.items():
        for scale in ("", "-log"):
            forms[f"explore{scale}{suffix}"] = explore_form(log=bool(scale), width=explored)
            forms[f"compare{scale}{suffix}"] = compare_form(log=bool(scale), width=compared)
    return f"tsForms({json.dumps(forms, separators=(',', ':'), sort_keys=True)});\n"


@cache
def _vega() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script."""
    import vl_convert

    made = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version="6.4")
    # Its names would otherwise become the page's own.
    return "(()=>{" + made + "})();\n"


def svg_job(drawing: Drawing) -> Job:
    """Return what a drawing process is asked for."""
    return {"kind": "svg", "spec": drawing.spec}


def drawn_charts(drawings: Sequence[tuple[Chart, Drawing]], answers: Sequence[str | None]) -> Mapping[str, object]:
    """Return the drawn charts by key, marked as ours and not to be escaped; None where one could not be drawn."""
    from markupsafe import Markup

    return {
        drawing.key: None if answer is None else Markup(inlined(answer, drawing.key, chart.alt))
        for (chart, drawing), answer in zip(drawings, answers, strict=True)
    }
