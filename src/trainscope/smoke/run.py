"""A smoke run from start to end: run the command, convert what was recorded, say why where that fails."""

from __future__ import annotations

import signal
import tempfile
from dataclasses import dataclass
from pathlib import Path

from trainscope.core.errors import TrainingFailedError, writing_in
from trainscope.core.files import PRINTED
from trainscope.smoke import convert
from trainscope.smoke.command import Outcome, Watcher, Wish, execute
from trainscope.smoke.records import Record, read, startup_fault

_HINT = "it must call step() of a torch.optim optimizer; python -I, -E and -S hide it"


@dataclass(frozen=True, slots=True)
class Smoke:
    """A smoke run that was recorded."""

    paths: tuple[Path, ...]
    """Run directory of each rank."""
    steps: int
    ended: str
    """``steps`` or ``script``."""
    seconds: float
    faults: tuple[str, ...]
    """What the recorder could not do."""


def smoke(wish: Wish, out: Path, watch: Watcher) -> Smoke:
    """Run a training command with the recorder injected.

    Parameters
    ----------
    out : Path
        Gets the run directories and the command's output.
    watch : callable
        Told now and then the steps done and wanted.

    Raises
    ------
    TrainingFailedError
        If the command crashed, ran out of time, or took no optimizer step.
    StoreError
        If `out` cannot be written.
    """
    with writing_in(out):
        out.mkdir(parents=True, exist_ok=True)
        convert.check_free(out)
        with tempfile.TemporaryDirectory(prefix="trainscope-") as folder:
            outcome = execute(wish, Path(folder), out / PRINTED, watch)
            records = read(Path(folder))
            _judge(outcome, records, startup_fault(Path(folder)), wish)
            paths = convert.write(records, wish, out)
    first = records[0]
    return Smoke(
        tuple(paths),
        len(first.steps),
        "steps" if len(first.steps) >= wish.steps else "script",
        outcome.seconds,
        tuple(dict.fromkeys(fault for record in records for fault in record.faults)),
    )


def _judge(outcome: Outcome, records: list[Record], fault: str | None, wish: Wish) -> None:
    """Raise unless the command did what a smoke run needs."""
    name = Path(wish.command[0]).name
    done = len(records[0].steps) if records else 0
    after = f"after {done} of {wish.steps} steps" if done else "before the first optimizer step"
    if outcome.timed_out:
        raise TrainingFailedError(f"{name}: not done in {wish.timeout:g} s, ended {after}", outcome.tail)
    finished = bool(records) and all(record.end.get("why") == "steps" for record in records)
    # A script that ends with an error because it was ended after the wanted steps has done its part.
    if outcome.code != 0 and not finished:
        raise TrainingFailedError(f"{name}: {_ending(outcome.code)} {after}", outcome.tail)
    if not records and fault is not None:
        raise TrainingFailedError(f"{name}: the recorder could not start ({fault})", outcome.tail)
    if not records:
        raise TrainingFailedError(f"{name}: no optimizer step was seen ({_HINT})", outcome.tail)


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
