"""Finds the checkpoints and generator states of a run, by the steps in their names.

Nothing is opened: a name says which step it is of, as every trainer writes it (``step_4400.pt``, ``checkpoint-4400/``,
``epoch=3-step=4400.ckpt``, ``global_step4400``, ``iter_0004400``, ``4400.pt``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trainscope.core.errors import ReadError

_NAMED = re.compile(r"(?:step|steps|checkpoint|ckpt|iter|iteration)[ _=-]?(\d{1,15})", re.IGNORECASE)
_LAST = re.compile(r"(\d{1,15})(?!.*\d)")
FOLDERS = ("checkpoints", "rng_states")
"""Where the recorder leaves them, in the folder of a run."""


@dataclass(frozen=True, slots=True, order=True)
class Checkpoint:
    """Something to begin again from."""

    step: int
    path: str


def step_of(name: str) -> int | None:
    """Return the step that a file or folder name stands for, None if it names none.

    The number behind ``step``, ``checkpoint`` or ``iter``; else the last one before the suffix.
    """
    named = _NAMED.findall(name)
    if named:
        return int(named[-1])
    last = _LAST.search(Path(name).stem if Path(name).suffix.lstrip(".").isalpha() else name)
    return int(last[1]) if last else None


def in_folder(folder: Path) -> list[Checkpoint]:
    """Return the checkpoints in a folder, by step; of two with one step the first by name.

    Raises
    ------
    ReadError
        If it cannot be listed.
    """
    try:
        names = sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith("."))
    except NotADirectoryError:
        raise ReadError(folder, "is a file; name the folder of the checkpoints") from None
    except OSError as error:
        raise ReadError(folder, f"cannot be listed ({(error.strerror or 'unreadable').lower()})") from None
    found: dict[int, Checkpoint] = {}
    for name in names:
        step = None if name.endswith((".part", ".tmp")) else step_of(name)
        if step is not None and step not in found:
            found[step] = Checkpoint(step, str(folder / name))
    return sorted(found.values())


def of_run(run: Path, kind: str) -> list[Checkpoint]:
    """Return what a run's own folder holds, none where it is no folder.

    Parameters
    ----------
    kind : str
        One of :data:`FOLDERS`.
    """
    folder = run / kind
    return in_folder(folder) if folder.is_dir() else []


def of_ranks(runs: Sequence[Path]) -> tuple[list[Checkpoint], list[Checkpoint]]:
    """Return checkpoints and generator states of a training of one or several ranks.

    Parameters
    ----------
    runs : sequence of Path
        Folders of the ranks. Usually one of them writes the checkpoints for all; the states of the generators are of
        the first, because each rank has its own.
    """
    found = {checkpoint.step: checkpoint for run in reversed(runs) for checkpoint in of_run(run, "checkpoints")}
    return sorted(found.values()), of_run(runs[0], "rng_states")


def last_before(found: Sequence[Checkpoint], step: int) -> Checkpoint | None:
    """Return the latest checkpoint at or before a step."""
    return max((one for one in found if one.step <= step), default=None)
