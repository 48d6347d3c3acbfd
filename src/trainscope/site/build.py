"""Builds the site: records from logs, pages from records, and nothing twice."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

from trainscope import __version__
from trainscope.core.errors import ConfigError, TrainscopeError
from trainscope.core.settings import Settings
from trainscope.report.text import printable, shorten
from trainscope.site import bundle, feed, index
from trainscope.site.archive import archived
from trainscope.site.bundle import Record
from trainscope.site.drawing import Drawer, Job
from trainscope.site.files import Memory, SiteFolder
from trainscope.site.grown import superseded
from trainscope.site.inputs import Progress, collect, error_entry, find, read_records
from trainscope.site.pages import findings_json, replay_json, run_view
from trainscope.site.shared import LISTS, MADE, Site, drawn_charts, list_files, svg_job, write_assets
from trainscope.site.templates import ASSETS, Templates
from trainscope.site.thumbnail import THEMES, thumbnail_chart, thumbnail_svg
from trainscope.site.views import RunView

KEEP = 1000
"""Runs that have a page of their own; older ones go to the archive. About 0.44 MB each, measured."""


_ADDRESS = re.compile(r"https?://[^\s<>\"'`{}|\\^?#\x7f-\U0010ffff]+")
"""What stands before the path of a page: no query and no place in a page."""
_TITLE = "Training runs"


@dataclass(frozen=True, slots=True)
class Options:
    """How to build a site."""

    title: str = _TITLE
    base_url: str = ""
    """Where the site will be published; feeds need whole addresses."""
    templates: Path | None = None
    jobs: int | None = None
    prune: bool = False
    """Remove runs that no path names."""
    keep: int = KEEP


@dataclass(frozen=True, slots=True)
class Built:
    """What a build did."""

    runs: int
    archived: int
    read: int
    """Logs that were read and judged."""
    drawn: int
    """Run pages that were drawn."""
    removed: int
    """Runs that no path names, if asked to prune; else those whose log has grown, which are another run now."""
    undrawn: int
    """Charts that could not be drawn; their places say so."""
    size: int
    """Bytes of the site."""
    failures: tuple[str, ...]


def build(
    paths: Sequence[str], out: Path, settings: Settings, options: Options, *, progress: Progress | None = None
) -> Built:
    """Build or update the site of some runs.

    Parameters
    ----------
    paths : sequence of str
        Run directories, logs, baseline files, globs, ``-``, and records of a site.
    out : Path
        Folder of the site, new, empty or a site.
    settings : Settings
        Which detectors run, and what fails the gate.
    options : Options
    progress : callable, optional
        Told before each log, and before each page.

    Raises
    ------
    NoDataError, ReadError
        If no run at all could be read and judged.
    ConfigError
        If `out` holds something else, a template or setting is wrong, or a package is missing.
    StoreError
        If the site cannot be written.
    """
    templates = Templates(options.templates)
    title = shorten(printable(options.title.strip()), 200) or _TITLE
    site = Site(title, _folder_url(options.base_url), __version__)
    looks = _looks(templates, site)
    with Drawer(options.jobs) as drawer:
        folder = SiteFolder(out)
        memory = folder.prepare()
        with _nothing_left(folder):
            wanted = find(paths, settings)
        names = [log.name for log in wanted.logs]
        if wanted.is_known(memory.inputs) and memory.whole == _stamp(folder, looks, options, names):
            return Built(len(list(folder.runs())), _count_archived(folder), 0, 0, 0, 0, folder.size(), ())
        with _nothing_left(folder):
            collected = collect(wanted, settings, memory.inputs, out, progress=progress)
        records = dict(collected.records)
        unnamed = [run for run in folder.runs() if run not in records]
        # What a path names stays, though it cannot be read today.
        owed = {*collected.unread, *(r for n in collected.unread if n in memory.inputs for r in memory.inputs[n].runs)}
        staying = [run for run in unnamed if not options.prune or run in owed]
        kept, damaged = read_records((out / "runs" / run / bundle.NAME for run in staying), at_home=True)
        gone = [run for run in superseded(memory.inputs, collected.inputs, kept, records) if run not in records]
        records |= {run: record for run, record in kept.items() if run not in gone}
        gone += [run for run in unnamed if run not in staying]
        errors = [*collected.errors, *map(error_entry, damaged)]
        ranked = index.newest_first(list(records.values()))
        ranked = [*ranked[: options.keep], *(archived(r) for r in ranked[options.keep :])]
        # Before anything is written: a template may be wrong.
        with _nothing_left(folder):
            lists = list_files(ranked, errors, templates, site, drawer)
            drawn = _write_runs(ranked, folder, memory, templates, site, looks, drawer, progress)
        for name, content in lists.items():
            folder.write(name, content)
        for run in gone:
            folder.remove_run(run)
        write_assets(folder, memory, templates)
        known = {k: v for k, v in memory.inputs.items() if set(v.runs) <= set(records)}
        if options.prune:
            known = {name: one for name, one in known.items() if name in collected.unread}
        memory.inputs = {**known, **collected.inputs}
        memory.pages = {run: key for run, key in memory.pages.items() if run in records}
        memory.whole = "" if drawer.failed or damaged else _stamp(folder, looks, options, names)
        folder.remember(memory)
        return Built(
            runs=len(ranked),
            archived=sum(r.archived for r in ranked),
            read=collected.read,
            drawn=drawn,
            removed=len(gone),
            undrawn=drawer.failed,
            size=folder.size(),
            failures=(*collected.failures, *map(str, damaged)),
        )


@contextmanager
def _nothing_left(folder: SiteFolder) -> Iterator[None]:
    """Take a new folder away again if nothing came of it: no log could be judged, or a template is wrong."""
    try:
        yield
    except TrainscopeError:
        folder.take_back()
        raise


def _looks(templates: Templates, site: Site) -> str:
    """Return all that a page depends on beside its record."""
    libraries = " ".join(version(name) for name in ("altair", "vl-convert-python", "pillow", "jinja2"))
    return f"{templates.digest()} {libraries} {__version__} {site.title}"


def _stamp(folder: SiteFolder, looks: str, options: Options, names: Sequence[str]) -> str:
    """Return a hash of all that a site is made from and of what it holds; names count only where others go."""
    found = hashlib.sha256(f"{looks}\0{options.base_url}\0{options.keep}\0".encode())
    if options.prune:
        found.update("\0".join(names).encode("utf-8", "surrogatepass"))
    for run in folder.runs():
        found.update(f"\0{run}\0{folder.has(f'runs/{run}/index.html')}\0".encode())
        found.update(hashlib.sha256(folder.read(f"runs/{run}/{bundle.NAME}")).digest())
    complete = all(folder.has(name) for name in (*LISTS, *(f"assets/{name}" for name in (*ASSETS, *MADE))))
    return found.hexdigest()[:32] if complete else ""


def _count_archived(folder: SiteFolder) -> int:
    return sum(not folder.has(f"runs/{run}/index.html") for run in folder.runs())


def _write_runs(
    records: Sequence[Record],
    folder: SiteFolder,
    memory: Memory,
    templates: Templates,
    site: Site,
    looks: str,
    drawer: Drawer,
    progress: Progress | None,
) -> int:
    drawn = 0
    for done, record in enumerate(records):
        text = bundle.to_text(record)
        key = hashlib.sha256(f"{looks}\0{text}".encode()).hexdigest()[:32]
        home = f"runs/{record.id}"
        page = "findings.json" if record.archived else "index.html"
        is_whole = folder.has(f"{home}/{page}") and folder.holds(f"{home}/{bundle.NAME}", text)
        if memory.pages.get(record.id) == key and is_whole:
            continue
        if progress is not None:
            progress(done, len(records), record.entry.name)
        failed = drawer.failed
        files: dict[str, str | bytes] = {bundle.NAME: text, "findings.json": findings_json(record)}
        files["badge.svg"] = templates.render("badge.svg.j2", **feed.badge_of(record))
        if (replay := replay_json(record)) is not None:
            files["replay_config.json"] = replay
        if not record.archived:
            files |= _run_page(run_view(record), templates, site, drawer)
            drawn += 1
        for name, content in files.items():
            folder.write(f"{home}/{name}", content)
        folder.keep_only(record.id, files)
        memory.pages[record.id] = key if drawer.failed == failed else ""  # what failed is tried again
    if progress is not None:
        progress(len(records), len(records), "")
    return drawn


def _run_page(view: RunView, templates: Templates, site: Site, drawer: Drawer) -> dict[str, str | bytes]:
    """Return the page of a run and its pictures."""
    thumbnail = thumbnail_chart(view)
    drawings = view.drawings()
    wanted = [*drawings, *([(thumbnail, d) for d in thumbnail.drawings] if thumbnail is not None else [])]
    answers = drawer.draw([svg_job(d) for _, d in wanted])
    svg = drawn_charts(drawings, answers[: len(drawings)])
    files: dict[str, str | bytes] = {
        "index.html": templates.render("run.html.j2", page=view, svg=svg, site=site, root="../../")
    }
    last = answers[-1] if thumbnail is not None else None
    if last is not None:
        jobs: list[Job] = [{"kind": "png", "svg": thumbnail_svg(view, last, theme)} for theme in THEMES]
        for theme, picture in zip(THEMES, drawer.draw(jobs), strict=True):
            if picture is not None:
                files[f"thumb-{theme}.png"] = base64.b64decode(picture)
    return files


def _folder_url(base_url: str) -> str:
    try:
        is_whole = not base_url or bool(_ADDRESS.fullmatch(base_url) and urlsplit(base_url).hostname)
    except ValueError:
        is_whole = False
    if not is_whole:
        raise ConfigError(f"--base-url {base_url}: is no web address; give one such as https://example.org/runs/")
    return base_url if not base_url or base_url.endswith("/") else f"{base_url}/"
