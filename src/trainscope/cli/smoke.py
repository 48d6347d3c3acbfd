"""``trainscope smoke``: record the first steps of a training script, unchanged."""

from __future__ import annotations

import shlex
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainscope.cli.exit_codes import ExitCode
from trainscope.cli.options import LARGEST
from trainscope.cli.output import say
from trainscope.cli.progress import Progress
from trainscope.core.claims import claimed
from trainscope.core.errors import ConfigError

if TYPE_CHECKING:
    from trainscope.replay.config import ReplayConfig
    from trainscope.smoke.run import Smoke

STEPS = 200
"""Optimizer steps where nobody says how many."""
LINES_EVERY = 10.0
"""Seconds between two lines of progress where nobody watches a bar."""


@click.command(
    short_help="Record the first steps of a training script, unchanged.",
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False},
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND...")
@click.option(
    "--steps",
    type=click.IntRange(1, LARGEST),
    metavar="N",
    help="Optimizer steps after which the script is ended.  [default: 200; of a replay, as many as its run]",
)
@click.option(
    "--seed",
    type=click.IntRange(0, LARGEST),
    metavar="S",
    help="Seed Python, NumPy and torch when torch is imported; default: leave the script's seeds alone.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Folder for the recorded run (smoke/) and the script's output (output.log).  "
    "[default: trainscope_smoke; with --replay, trainscope_replay]",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=3600.0,
    show_default=True,
    metavar="SECONDS",
    help="End the script after so long; that is a failure.",
)
@click.option(
    "--replay",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Leave out the batches that this replay_config.json names, and say whether that removes the incident.",
)
def smoke(
    command: tuple[str, ...], steps: int | None, seed: int | None, out: Path | None, timeout: float, replay: Path | None
) -> ExitCode:
    """Record the first steps of a training script, unchanged.

    COMMAND is whatever starts the training: python train.py, torchrun, accelerate launch, make. It ends with exit code 0 after N optimizer steps. A script that crashes, runs out of time or never takes a step gives exit code 4 and shows its last lines. With --replay: 0 the incident is gone, 1 it is still there or has moved, 2 nothing is proven.
    """  # noqa: E501
    if replay is not None:
        return _replay(command, steps, seed, out or Path("trainscope_replay"), timeout, replay)
    folder = out or Path("trainscope_smoke")
    with claimed(folder):
        done = run_smoke(command, steps or STEPS, seed, folder, timeout)
    say(f"{describe(done)}\n{next_command(done, folder)}")
    return ExitCode.PASS


def _replay(
    command: tuple[str, ...], steps: int | None, seed: int | None, out: Path, timeout: float, file: Path
) -> ExitCode:
    from trainscope.cli import proof
    from trainscope.replay.config import load

    config = load(file)
    original = proof.original_of(config, file, out)
    wanted, chosen = proof.steps_of(config, steps), proof.seed_of(config, seed)
    with claimed(out):
        done = run_smoke(command, wanted, chosen, out, timeout, skip=config)
        say(describe(done))
        return proof.prove(config, original, done, out)


def run_smoke(
    command: tuple[str, ...],
    steps: int,
    seed: int | None,
    out: Path,
    timeout: float,
    *,
    skip: ReplayConfig | None = None,
) -> Smoke:
    """Run a training command with progress on standard error.

    Parameters
    ----------
    skip : ReplayConfig, optional
        Which batches to leave out, and how.
    """
    from trainscope.smoke.command import Wish
    from trainscope.smoke.run import smoke as record

    if not command[0].strip():
        raise ConfigError("the command is empty: its first word must be a program")
    wish = Wish(command, steps, seed, timeout)
    if skip is not None:
        wish = replace(wish, skip=tuple(skip.skip_batches), loader=skip.loader, method=skip.method)
    if sys.stderr.isatty():
        with Progress() as progress:
            return record(wish, out, lambda done, wanted: progress.update(done, wanted, "steps"))
    return record(wish, out, _Lines())


def describe(smoke: Smoke) -> str:
    """Return one line on a finished smoke run."""
    why = "" if smoke.ended == "steps" else ", then the script ended by itself"
    ranks = f" on each of {len(smoke.paths)} ranks" if len(smoke.paths) > 1 else ""
    lines = [f"recorded {smoke.steps} steps{ranks} in {smoke.seconds:.0f} s{why}: {smoke.paths[0]}"]
    lines += [f"warning: the recorder could not see all: {fault}" for fault in smoke.faults]
    return "\n".join(lines)


def next_command(smoke: Smoke, out: Path) -> str:
    """Return what to do with a finished smoke run."""
    folder, run = shlex.quote(str(out)), shlex.quote(str(smoke.paths[0] if len(smoke.paths) > 1 else out))
    return f"next: trainscope analyze {folder}   or keep it:   trainscope baseline save {run}"


class _Lines:
    """Progress as plain lines."""

    def __init__(self) -> None:
        self._next, self._told = time.monotonic() + LINES_EVERY, 0

    def __call__(self, done: int, wanted: int) -> None:
        if done > self._told and time.monotonic() >= self._next:
            self._next, self._told = time.monotonic() + LINES_EVERY, done
            say(f"step {done} of {wanted}")
