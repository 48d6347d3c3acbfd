"""``trainscope smoke``: record the first steps of a training script, unchanged."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainscope.cli.exit_codes import ExitCode
from trainscope.cli.output import say
from trainscope.cli.progress import Progress

if TYPE_CHECKING:
    from trainscope.smoke.run import Smoke

LINES_EVERY = 10.0
"""Seconds between two lines of progress where nobody watches a bar."""


@click.command(
    short_help="Record the first steps of a training script, unchanged.",
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False},
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND...")
@click.option(
    "--steps",
    type=click.IntRange(min=1),
    default=200,
    show_default=True,
    metavar="N",
    help="Optimizer steps after which the script is ended.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    metavar="S",
    help="Seed Python, NumPy and torch when torch is imported; default: leave the script's seeds alone.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("trainscope_smoke"),
    show_default=True,
    metavar="DIR",
    help="Folder for the recorded run (smoke/) and the script's output (output.log).",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=3600.0,
    show_default=True,
    metavar="SECONDS",
    help="End the script after so long; that is a failure.",
)
def smoke(command: tuple[str, ...], steps: int, seed: int | None, out: Path, timeout: float) -> ExitCode:
    """Record the first steps of a training script, unchanged.

    COMMAND is whatever starts the training: python train.py, torchrun, accelerate launch, make. It ends with exit code 0 after N optimizer steps. A script that crashes, runs out of time or never takes a step gives exit code 4 and shows its last lines.
    """  # noqa: E501
    say(describe(run_smoke(command, steps, seed, out, timeout)))
    return ExitCode.PASS


def run_smoke(command: tuple[str, ...], steps: int, seed: int | None, out: Path, timeout: float) -> Smoke:
    """Run a training command with progress on standard error."""
    from trainscope.smoke.command import Wish
    from trainscope.smoke.run import smoke as record

    wish = Wish(command, steps, seed, timeout)
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


class _Lines:
    """Progress as plain lines."""

    def __init__(self) -> None:
        self._next = time.monotonic() + LINES_EVERY

    def __call__(self, done: int, wanted: int) -> None:
        if time.monotonic() >= self._next:
            self._next += LINES_EVERY
            say(f"step {done} of {wanted}")
