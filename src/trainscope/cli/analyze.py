"""``trainscope analyze``: judge the logs of training runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainscope.cli.exit_codes import ExitCode, of_verdict
from trainscope.cli.options import judging_options, settings_for
from trainscope.cli.output import check_writable, is_stdout, tell, write_file, write_stdout
from trainscope.cli.progress import Progress
from trainscope.cli.terminal import render_for_terminal

if TYPE_CHECKING:
    from trainscope.report.pipeline import Analysis

OUTPUTS = ("terminal", "json", "markdown", "html", "junit")


@click.command(short_help="Judge the logs of training runs.")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@judging_options
@click.option("--output", type=click.Choice(OUTPUTS), default="terminal", show_default=True, help="Form of the report.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the report to a file (- is standard output); one line then goes to the terminal.",
)
@click.option("--quiet", "-q", is_flag=True, help="No report on the terminal; only errors and the exit code.")
def analyze(
    paths: tuple[str, ...],
    format_: str | None,
    fail_on: str | None,
    config: Path | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    no_color: bool,
    output: str,
    out: Path | None,
    quiet: bool,
) -> ExitCode:
    """Judge the logs of training runs.

    PATH is a file, a folder, a glob, or - for standard input. The format is found by looking into the
    file.

    A log that cannot be read does not stop the others and never passes: the exit code is then 2, or 1
    if the gate failed on the rest.
    """
    from trainscope.core.settings import settings_file
    from trainscope.report.pipeline import analyze as analyze_logs

    settings = settings_for(config, fail_on, select, ignore)
    if out is not None and is_stdout(out):
        out = None
    if out is not None:
        used = settings_file(config)
        check_writable(out, [used] if used is not None else [])
    with Progress() as progress:
        analysis = analyze_logs(paths, settings, format=format_, progress=progress.update, spare=out)
    written = _report(analysis, output, out, quiet=quiet, no_color=no_color)
    code = of_verdict(analysis.document.verdict.status)
    return ExitCode.CANNOT_JUDGE if code is ExitCode.PASS and not written else code


def _report(analysis: Analysis, output: str, out: Path | None, *, quiet: bool, no_color: bool) -> bool:
    """Write the report; tell whether standard output took what was meant for it."""
    from trainscope.report.renderers import render
    from trainscope.report.terminal import summary
    from trainscope.report.text import printable

    document, written = analysis.document, True
    if out is not None:
        write_file(out, render(output, document, analysis.runs))
        if not quiet:
            written = write_stdout(f"{summary(document)}  {printable(str(out))}\n")
    elif output != "terminal":
        written = write_stdout(render(output, document, analysis.runs))
    elif not quiet:
        written = write_stdout(render_for_terminal(document, analysis.runs, sys.stdout, no_color=no_color))
    if output != "terminal" or out is not None or quiet:
        for failure in analysis.failures:
            tell(failure)
    return written
