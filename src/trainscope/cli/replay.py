"""``trainscope replay``: plan how to train again without what hurt."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainscope.cli.exit_codes import ExitCode
from trainscope.cli.options import settings_for
from trainscope.cli.output import STDOUT, check_writable, is_stdout, say, write_file, write_stdout
from trainscope.core.errors import ConfigError

if TYPE_CHECKING:
    from trainscope.core.run import Run
    from trainscope.replay.config import ReplayConfig


@click.command(short_help="Plan a rewind and the batches to skip.")
@click.option("--run", "path", metavar="PATH", help="Plan it from this run: a recorded run, or a log.")
@click.option("--checkpoint", metavar="CKPT", help="Begin here; with --run, instead of the checkpoint that is found.")
@click.option(
    "--skip-batches",
    multiple=True,
    metavar="LIST|@FILE",
    help="Positions to leave out: numbers and ranges (4521,4530-4540), or a file with one such list a line.",
)
@click.option("--checkpoints", type=click.Path(path_type=Path), metavar="DIR", help="Look for checkpoints here too.")
@click.option("--resume", is_flag=True, help="Go on in the run of the checkpoint.")
@click.option("--config", type=click.Path(path_type=Path), metavar="FILE", help="Settings file; default: found.")
@click.option(
    "--output", type=click.Choice(("terminal", "json")), default="terminal", show_default=True, help="What is printed."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("replay_config.json"),
    show_default=True,
    metavar="FILE",
    help="Where the plan is written; - is standard output.",
)
def replay(
    path: str | None,
    checkpoint: str | None,
    skip_batches: tuple[str, ...],
    checkpoints: Path | None,
    resume: bool,
    config: Path | None,
    output: str,
    out: Path,
) -> ExitCode:
    """Plan how to train again without what hurt: where to begin, and which batches to leave out.

    Either name the checkpoint and the batches, or let --run find them: the run is judged, its story told, and the
    story's cause decides whether skipping can help. SkippingDataLoader in trainscope.replay leaves the batches out;
    trainscope smoke --replay proves that it helps.
    """
    if is_stdout(out):
        out = Path(STDOUT)
    if path is None:
        _check(out)
        plan = _asked(checkpoint, skip_batches, checkpoints, resume=resume)
    elif skip_batches:
        raise ConfigError("--run finds the batches itself: leave out --skip-batches, or --run")
    else:
        _check(out)
        found = _planned(path, checkpoint, checkpoints, config, out)
        if found is None:
            kept = f"; {out} is of an earlier run and stays as it is" if str(out) != STDOUT and out.exists() else ""
            say(f"no incident in this run: nothing to skip, nothing to rewind{kept}")
            return ExitCode.PASS
        plan = found.model_copy(update={"resume": True}) if resume else found
    return _write(plan, output, out)


def _asked(
    checkpoint: str | None, skip_batches: tuple[str, ...], checkpoints: Path | None, *, resume: bool
) -> ReplayConfig:
    from trainscope.replay.request import batches_from, request

    if checkpoint is None:
        raise ConfigError("nothing to plan: give --checkpoint and --skip-batches, or --run")
    if not skip_batches:
        raise ConfigError("--skip-batches is missing: which batches are to be left out?")
    if checkpoints is not None:
        raise ConfigError("--checkpoints belongs to --run: the checkpoint is named already")
    if not checkpoint.strip():
        raise ConfigError("--checkpoint '': names nothing; give the file or folder of a checkpoint")
    batches = batches_from(skip_batches)
    if "://" not in checkpoint and not os.path.exists(checkpoint):  # noqa: PTH110 (the method raises on a long name)
        say(f"warning: {checkpoint}: no such file or folder here; the plan names it all the same")
    return request(checkpoint, batches, resume=resume)


def _planned(
    path: str, checkpoint: str | None, checkpoints: Path | None, config: Path | None, out: Path
) -> ReplayConfig | None:
    """Judge a run and plan from its first incident."""
    from trainscope.cli.planning import plan_of

    settings = settings_for(config, None, (), ())
    named = Path("replay_config.json" if str(out) == STDOUT else out)
    return plan_of(_runs_of(path), settings, named, checkpoint, checkpoints)


def _runs_of(path: str) -> list[Run]:
    """Return the run at a path, or all ranks of the launch that is there."""
    from trainscope.diagnosis.ranks import are_one_launch
    from trainscope.readers import find_logs, read_runs

    runs = [run for log in find_logs([path]) for run in read_runs(log)]
    if not are_one_launch(runs):
        raise ConfigError(f"--run {path}: holds {len(runs)} runs; name one of them")
    return runs


def _check(out: Path) -> None:
    """Refuse to write over anything but an earlier plan.

    Raises
    ------
    ConfigError
        If the file is something else, or cannot be written.
    """
    from trainscope.replay.config import is_replay_config

    if str(out) == STDOUT:
        return
    check_writable(out)
    if out.is_file() and not is_replay_config(out):
        raise ConfigError(f"--out {out}: is there and is no replay configuration; name another file")


def _write(plan: ReplayConfig, output: str, out: Path) -> ExitCode:
    from trainscope.replay.text import lines
    from trainscope.report.text import printable

    _check(out)
    to_stdout = str(out) == STDOUT
    if not to_stdout:
        write_file(out, plan.to_json())
    if to_stdout or output == "json":
        write_stdout(plan.to_json())
    else:
        write_stdout("".join(f"{printable(line)}\n" for line in lines(plan, str(out))))
    if not to_stdout:
        say(f"written: {out}")
    return ExitCode.PASS
