"""``trainscope ci``: the whole pipeline, the one command that a CI job, a laptop and the tests call."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainscope.cli.exit_codes import ExitCode, of_verdict
from trainscope.cli.options import FAIL_ON, LARGEST, split
from trainscope.cli.output import say, write_stdout
from trainscope.cli.outputs import write_outputs
from trainscope.cli.planning import plans_of
from trainscope.cli.terminal import render_for_terminal
from trainscope.core.claims import claimed
from trainscope.core.errors import ConfigError, NoDataError, ReadError

if TYPE_CHECKING:
    from trainscope.core.run import Run
    from trainscope.core.settings import Settings
    from trainscope.report.pipeline import Analysis


@click.command(
    short_help="Run, judge, compare, report and gate in one go.",
    context_settings={"allow_interspersed_args": False},
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("trainscope_ci"),
    show_default=True,
    metavar="DIR",
    help="Folder for findings.json, report.md, report.html, bundle/, records/, the recorded run, a replay_config.json.",
)
@click.option(
    "--baseline",
    multiple=True,
    metavar="PATH",
    help="Compare with this: a saved baseline, the --out of an earlier run, or a log (repeat for several seeds).",
)
@click.option("--logs", multiple=True, metavar="PATH", help="Judge these logs, files or globs, instead of a command.")
@click.option(
    "--steps", type=click.IntRange(1, LARGEST), metavar="N", help="Optimizer steps to record.  [default: 200]"
)
@click.option("--seed", type=click.IntRange(0, LARGEST), metavar="S", help="Seed for the script; default: its own.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="End the script after so long; that is a failure.  [default: 3600]",
)
@click.option("--fail-on", type=click.Choice(FAIL_ON), help="Least severity that fails the gate.  [default: warning]")
@click.option(
    "--gate",
    type=click.Choice(("all", "new")),
    help="Whether findings that the baseline has fail too.  [default: new with a baseline, else all]",
)
@click.option("--config", type=click.Path(path_type=Path), metavar="FILE", help="Settings file; default: found.")
@click.option("--select", multiple=True, metavar="DETECTOR", help="Run only these detectors and comparisons.")
@click.option("--ignore", multiple=True, metavar="DETECTOR", help="Leave these out.")
@click.option("--no-color", is_flag=True, help="No colours; so does the variable NO_COLOR.")
@click.option("--quiet", "-q", is_flag=True, help="No report on the terminal; only errors and the exit code.")
def ci(
    command: tuple[str, ...],
    out: Path,
    baseline: tuple[str, ...],
    logs: tuple[str, ...],
    steps: int | None,
    seed: int | None,
    timeout: float | None,
    fail_on: str | None,
    gate: str | None,
    config: Path | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    no_color: bool,
    quiet: bool,
) -> ExitCode:
    """Run, judge, compare, report and gate in one go.

    COMMAND is a training command, run unchanged with the recorder injected; without one the settings file
    says what to run (command) or to read (logs). The folder of one run serves as the --baseline of the next,
    which then needs an --out of its own.
    """
    given = {"steps": steps, "seed": seed, "timeout": timeout, "fail_on": fail_on, "gate": gate}
    lists = {"command": list(command), "baseline": list(baseline), "select": split(select), "ignore": split(ignore)}
    changes: dict[str, object] = {key: value for key, value in {**given, **lists}.items() if value not in (None, [])}
    settings = _settings(config, changes)
    if logs:
        if command:
            raise ConfigError("a command and --logs: give one of them; a command is judged by what it records")
        settings = settings.model_copy(update={"command": [], "logs": list(logs)})
    if not settings.command and not settings.logs:
        raise ConfigError(
            "nothing to do: give a command after --, or --logs, or set command or logs in trainscope.toml"
        )
    _keep_apart(settings.baseline, out)
    analysis = run_pipeline(settings, out)
    if not quiet:
        write_stdout(render_for_terminal(analysis.document, analysis.runs, sys.stdout, no_color=no_color))
        say(f"written: {out}")
        if settings.command and not settings.baseline:
            kept = analysis.document.runs[0].source if len(analysis.runs) > 1 else str(out)
            say(f"next: keep it to compare other runs with: trainscope baseline save {shlex.quote(kept)}")
    return of_verdict(analysis.document.verdict.status)


def _keep_apart(baselines: Sequence[str], out: Path) -> None:
    """Refuse to replace a baseline by the run that is held against it: the next call would pass what this one fails.

    Raises
    ------
    ConfigError
        If `out` is a baseline, or one is of what an earlier run left there.
    """
    from trainscope.report.against import BUNDLE_FOLDER
    from trainscope.smoke.record import RUN_NAME

    for path in baselines:
        whole, folder = Path(path).resolve(), out.resolve()
        inside = whole.relative_to(folder).parts if whole.is_relative_to(folder) else None
        if inside is not None and (not inside or inside[0].startswith((RUN_NAME, BUNDLE_FOLDER))):
            raise ConfigError(
                f"--baseline {path}: the run would replace it in --out {out}; name another --out, or keep the baseline "
                f"elsewhere: trainscope baseline save {shlex.quote(path)}"
            )


def _settings(config: Path | None, changes: dict[str, object]) -> Settings:
    """Return the file's settings under those of the command line; a baseline changes what fails by default."""
    from trainscope.core.settings import load_settings

    loaded = load_settings(config)
    settings = loaded.model_copy(update=changes)
    if settings.baseline and "gate" not in {*changes, *loaded.model_fields_set}:
        settings = settings.model_copy(update={"gate": "new"})
    return settings


def run_pipeline(settings: Settings, out: Path) -> Analysis:
    """Record or read, judge, compare, and write every output.

    Parameters
    ----------
    settings : Settings
        ``command`` wins over ``logs``.
    out : Path
        Made if missing.

    Returns
    -------
    Analysis
        A baseline that is missing or unreadable is one of the document's errors: the verdict is then never
        ``pass``, but the run is judged and written, so that it can be the next baseline.

    Raises
    ------
    TrainingFailedError
        If the command crashed, ran out of time, or took no optimizer step.
    NoDataError, ReadError
        If no log could be judged.
    StoreError, ConfigError
        If `out` cannot be written, or a setting is wrong.
    """
    from trainscope.report.against import analyze_against, analyze_alone, read_baselines

    baselines: list[Run] = []
    missing: ReadError | NoDataError | None = None
    if settings.baseline:
        try:
            baselines = read_baselines(settings.baseline)
        except (ReadError, NoDataError) as error:
            missing = error
            say(f"warning: no baseline: {error}")
    with claimed(out) if settings.command else nullcontext():
        runs = _record(settings, out) if settings.command else _read(settings.logs)
        if baselines:
            analysis = analyze_against(runs, baselines, settings, _name(settings.baseline))
        else:
            analysis = analyze_alone(runs, settings, missing)
        write_outputs(analysis, settings, out, plans_of(analysis, out))
    return analysis


def _record(settings: Settings, out: Path) -> list[Run]:
    from trainscope.cli.smoke import describe, run_smoke
    from trainscope.readers import read_runs

    smoke = run_smoke(tuple(settings.command), settings.steps, settings.seed, out, settings.timeout)
    say(describe(smoke))
    return [run for path in smoke.paths for run in read_runs(path)]


def _read(logs: Sequence[str]) -> list[Run]:
    from trainscope.readers import find_logs, read_runs

    return [run for log in find_logs(logs) for run in read_runs(log)]


def _name(paths: Sequence[str]) -> str:
    """Return what a report calls the baseline: last parts of its paths, the same on any machine."""
    from trainscope.report.build import portable

    return ", ".join(portable(path) for path in paths)
