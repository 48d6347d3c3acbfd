"""``trainscope report``: case files of runs that broke."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainscope.cli.exit_codes import ExitCode
from trainscope.cli.options import settings_for
from trainscope.cli.output import check_writable, is_stdout, tell, write_file, write_stdout
from trainscope.cli.progress import Progress

if TYPE_CHECKING:
    from trainscope.core.settings import Settings
    from trainscope.report.cases import Reported

FORMATS = ("markdown", "json", "html")
_STEPS = re.compile(r"(\d{1,15}):(\d{1,15})", re.ASCII)


@click.command(short_help="Write the case file of a run, or compare many runs.")
@click.option("--run", "run", metavar="PATH", help="One run: a recorded run's folder, or a log.")
@click.option(
    "--runs", "roots", multiple=True, metavar="ROOT", help="Many runs: folders, logs or globs; more may follow."
)
@click.argument("more", nargs=-1, metavar="[ROOT]...")
@click.option("--diff", "diff", metavar="A:B", help="How the weights of the run changed from step A to step B.")
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default="markdown", show_default=True, help="Form of the report."
)
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Write to a file (- is standard output).")
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Settings file; default: trainscope.toml or pyproject.toml, found from here upwards.",
)
def report(
    run: str | None,
    roots: tuple[str, ...],
    more: tuple[str, ...],
    diff: str | None,
    form: str,
    out: Path | None,
    config: Path | None,
) -> ExitCode:
    """Write the case file of one run, or compare many runs.

    With --run: what broke, in order, why, how the weights moved, and what cannot be told. With --runs: which
    runs broke alike, which settings they share and stable runs lack, and the stable run that is nearest.

    A report judges nothing: the exit code is 0 whatever was found, and 2 if a log could not be read. Gates are
    trainscope analyze and trainscope ci.
    """
    from trainscope.core.settings import settings_file

    if more and run is not None:
        raise click.UsageError(f"--run is of one run; for {more[0]} too give --runs {run} {more[0]}")
    if (run is None) == (not roots):
        given = f" before {more[0]}" if more else ""
        raise click.UsageError(f"give either --run PATH or --runs ROOT{given}")
    roots += more  # a shell makes several words of an unquoted --runs logs/*.csv
    if diff is not None and run is None:
        raise click.UsageError("--diff compares two steps of one run; give it with --run")
    settings = settings_for(config, None)
    if out is not None and is_stdout(out):
        out = None
    if out is not None:
        used = settings_file(config)
        check_writable(out, [used] if used is not None else [])
        _check(out)
    reported = _reported(run, roots, diff, settings, out)
    written = _write(reported, form, out)
    for failure in reported.failures:
        tell(failure)
    return ExitCode.CANNOT_JUDGE if reported.failures or not written else ExitCode.PASS


def _check(out: Path) -> None:
    """Refuse to write over a file that is no report.

    Raises
    ------
    ConfigError
        If it is something else, or cannot be read.
    """
    from trainscope.core.errors import ConfigError
    from trainscope.report.case_outputs import is_report

    try:
        foreign = out.is_file() and not is_report(out)
    except OSError as error:
        raise ConfigError(f"--out {out}: is there and cannot be read ({error.strerror}); name another file") from None
    if foreign:
        raise ConfigError(f"--out {out}: is there and is no report; name another file")


def _reported(
    run: str | None, roots: tuple[str, ...], diff: str | None, settings: Settings, out: Path | None
) -> Reported:
    from trainscope.report.cases import report_diff, report_run, report_runs

    if run is not None and diff is not None:
        return report_diff(run, *_steps(diff), spare=out)
    with Progress() as progress:
        if run is not None:
            return report_run(run, settings, progress=progress.update, spare=out)
        return report_runs(roots, settings, progress=progress.update, spare=out)


def _steps(diff: str) -> tuple[int, int]:
    """Return the two steps of ``--diff``, the earlier first."""
    match = _STEPS.fullmatch(diff)
    if match is None or match[1] == match[2]:
        raise click.UsageError(f"--diff {diff}: give two different steps, such as 100:250")
    first, last = sorted(map(int, match.groups()))
    return first, last


def _write(reported: Reported, form: str, out: Path | None) -> bool:
    """Write the report; tell whether standard output took what was meant for it."""
    from trainscope.report.case_outputs import render
    from trainscope.report.text import printable

    text = render(form, reported)
    if out is None:
        return write_stdout(text)
    write_file(out, text)
    return write_stdout(f"{form} report  {printable(str(out))}\n")
