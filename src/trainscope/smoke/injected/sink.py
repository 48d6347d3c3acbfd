"""Where the recorder writes: one file of JSON lines a (rank, process, program), opened at the first optimizer step."""

from __future__ import annotations

import array
import base64
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

import torch


def rank() -> int:
    """Return this process's rank: from torch.distributed, else from what the launcher set, else 0."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank()
    for name in ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"):
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 0


def world_size() -> int:
    """Return the number of processes that train together."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_world_size()
    for name in ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"):
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 1


def pack(values: Iterable[float]) -> str:
    """Return numbers as text that keeps every bit: little-endian float64 in base64."""
    return base64.b64encode(array.array("d", values).tobytes()).decode()


class Sink:
    """The file. A process that never takes an optimizer step (a data loader's worker) leaves none."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._file: TextIO | None = None
        self._waiting: list[str] = []

    def write(self, kind: str, **fields: Any) -> None:
        """Append one line. Lines before :meth:`open` wait for it."""
        line = json.dumps({"kind": kind, **fields}, separators=(",", ":"), default=str) + "\n"
        if self._file is None:
            self._waiting.append(line)
        else:
            self._file.write(line)

    def open(self) -> None:
        """Open the file, line-buffered: a killed process loses nothing."""
        if self._file is None:
            name = f"rank{rank()}-{os.getpid()}"
            before = len(list(self._folder.glob(f"{name}-*.jsonl")))  # of what this process was before it became this
            self._file = (self._folder / f"{name}-{before}.jsonl").open("x", buffering=1, encoding="utf-8")
            for line in self._waiting:
                self._file.write(line)
            self._waiting.clear()
