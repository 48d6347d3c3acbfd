"""``trainscope compare``: one run against another."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from trainscope.cli.exit_codes import ExitCode, of_verdict
from trainscope.cli.options import judging_options, settings_for
from trainscope.cli.output import check_writable, is_stdout, write_file, write_stdout
from trainscope.cli.terminal import render_for_terminal

OUTPUTS = ("terminal", "json", "markdown", "html", "junit")


@click.command(short_help="Compare a run with another.")
@click.argument("baseline", metavar="A")
@click.argument("paths", nargs=-1, required=True, metavar="B...")
@judging_options
@click.option("--output", type=click.Choice(OUTPUTS), default="terminal", show_default=True, help="Form of the report.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the report to a file; one line then goes to the terminal.",
)
def compare(
    baseline: str,
    paths: tuple[str, ...],
    format_: str | None,
    fail_on: str | None,
    config: Path | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    no_color: bool,
    output: str,
    out: Path | None,
) -> ExitCode:
    """Compare runs B with a run A, the baseline.

    Both are logs, recorded runs, saved baselines, or folders that trainscope ci wrote. Only findings that A
    lacks fail the gate.
    """
    from trainscope.core.settings import settings_file
    from trainscope.readers import read_runs
    from trainscope.report.against import analyze_against, read_baselines
    from trainscope.report.apart import keep_apart
    from trainscope.report.build import portable
    from trainscope.report.renderers import render
    from trainscope.report.terminal import summary
    from trainscope.report.text import printable

    settings = settings_for(config, fail_on, select, ignore).model_copy(update={"gate": "new"})
    if out is not None and is_stdout(out):
        out = None
    if out is not None:
        used = settings_file(config)
        check_writable(out, [used] if used is not None else [])
        keep_apart(out, [*paths, baseline])
    read = read_baselines if format_ is None else lambda given: [r for p in given for r in read_runs(p, format=format_)]
    analysis = analyze_against(read(paths), read([baseline]), settings, portable(baseline))
    if out is not None:
        write_file(out, render(output, analysis.document, analysis.runs))
        write_stdout(f"{summary(analysis.document)}  {printable(str(out))}\n")
    elif output == "terminal":
        write_stdout(render_for_terminal(analysis.document, analysis.runs, sys.stdout, no_color=no_color))
    else:
        write_stdout(render(output, analysis.document, analysis.runs))
    return of_verdict(analysis.document.verdict.status)
