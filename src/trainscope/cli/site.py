"""``trainscope site``: a static site of runs."""

from __future__ import annotations

from pathlib import Path

import click

from trainscope.cli.exit_codes import ExitCode
from trainscope.cli.options import settings_for
from trainscope.cli.output import say, say_undrawn, tell
from trainscope.cli.progress import Progress


@click.group(short_help="Build a static site of all runs.")
def site() -> None:
    """Build a static site of all runs, and look at it."""


@site.command(short_help="Build or update a site.")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    metavar="DIR",
    help="Folder of the site: new, empty, or a site to update.",
)
@click.option("--title", default="Training runs", show_default=True, help="What the site is called.")
@click.option("--base-url", default="", metavar="URL", help="Where it will be published; makes the feed's links whole.")
@click.option(
    "--templates",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of templates that take the place of ours, each one that is there.",
)
@click.option("--jobs", type=click.IntRange(1, 64), metavar="N", help="Drawing processes.  [default: one a core]")
@click.option(
    "--keep",
    type=click.IntRange(min=0),
    default=1000,
    show_default=True,
    metavar="N",
    help="Newest runs that have a page of their own; older ones are archived.",
)
@click.option("--prune", is_flag=True, help="Remove runs that no PATH names.")
@click.option("--fail-on", type=click.Choice(("info", "warning", "error", "never")), help="What a verdict fails on.")
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Settings file; default: trainscope.toml or pyproject.toml, found from here upwards.",
)
def build(
    paths: tuple[str, ...],
    out: Path,
    title: str,
    base_url: str,
    templates: Path | None,
    jobs: int | None,
    keep: int,
    prune: bool,
    fail_on: str | None,
    config: Path | None,
) -> ExitCode:
    """Build or update a site.

    PATH is a recorded run, a log, a baseline file, a folder, a glob, - for standard input, another site, or the
    record.js of a run in it. Runs that the site has already stay, and only what changed is read and drawn again.

    A site judges nothing: the exit code is 0 whatever was found, and 2 if a log could not be read.
    """
    from trainscope.report.text import plural
    from trainscope.site.build import Options
    from trainscope.site.build import build as build_site
    from trainscope.site.files import PAGES_LIMIT

    settings = settings_for(config, fail_on)
    options = Options(title, base_url, templates, jobs, prune, keep)
    with Progress() as progress:
        built = build_site(paths, out, settings, options, progress=progress.update)
    for failure in built.failures:
        tell(failure)
    say_undrawn(built.undrawn)
    if built.size > PAGES_LIMIT:
        say(f"warning: the site has {built.size / 1e9:.2f} GB, and GitHub Pages takes 1 GB; use --keep or --prune")
    more = f", {built.archived} archived" if built.archived else ""
    gone = f", {built.removed} removed" if built.removed else ""
    say(
        f"{out}: {plural(built.runs, 'run')}{more}{gone}; {plural(built.read, 'log')} read, "
        f"{plural(built.drawn, 'page')} drawn, {built.size / 1e6:.1f} MB"
    )
    return ExitCode.CANNOT_JUDGE if built.failures else ExitCode.PASS


@site.command(short_help="Show a site in the browser.")
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0 takes a free one.")
def serve(folder: Path, port: int) -> ExitCode:
    """Show a site in the browser, until Ctrl-C.

    Only for a look on this machine: the address is 127.0.0.1. A site needs no server; its index.html opens as a file.
    """
    from trainscope.site.serve import server_for

    with server_for(folder, port) as server:
        say(f"http://127.0.0.1:{server.server_address[1]}/ shows {folder}; Ctrl-C ends it")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return ExitCode.PASS
    return ExitCode.PASS
