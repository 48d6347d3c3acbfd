"""Reads what the injected recorder wrote: one file of JSON lines a process."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from trainscope.core.run import FloatArray

Row = Mapping[str, Any]


@dataclass(slots=True, eq=False)
class Record:
    """One process's record."""

    begin: Row = field(default_factory=dict)
    steps: list[Row] = field(default_factory=list)
    names: list[dict[int, Sequence[str]]] = field(default_factory=list)
    """For each step: optimizer number to the names of its parameters."""
    optimizers: dict[int, Row] = field(default_factory=dict)
    """Number to its first description."""
    schedulers: dict[int, Row] = field(default_factory=dict)
    labels: Row = field(default_factory=dict)
    nonfinite_operation: str | None = None
    dropped: list[Row] = field(default_factory=list)
    """Position and hash of each batch that a replay left out."""
    faults: list[str] = field(default_factory=list)
    end: Row = field(default_factory=dict)

    @property
    def rank(self) -> int:
        """Rank of the process."""
        return int(self.begin.get("rank", 0))

    def layers(self) -> tuple[str, ...]:
        """Return the names of all parameters that an optimizer has, in the order of the model."""
        held = dict.fromkeys(name for names in self.names for group in names.values() for name in group)
        listed = [str(row[0]) for row in self.begin.get("parameters") or ()]
        ordered = [name for name in dict.fromkeys(listed) if name in held]
        return (*ordered, *(name for name in held if name not in set(ordered)))


def read(folder: Path) -> list[Record]:
    """Return the record of each rank, in their order.

    Of several processes with one rank, one after the other, the one with most steps counts. A last line that
    a killed process left unfinished is dropped.
    """
    best: dict[int, Record] = {}
    for path in sorted(folder.glob("*.jsonl")):
        record = _parse(path)
        known = best.get(record.rank)
        if record.steps and (known is None or len(record.steps) > len(known.steps)):
            best[record.rank] = record
    return [best[rank] for rank in sorted(best)]


def startup_fault(folder: Path) -> str | None:
    """Return why the recorder could not start in a process that imported torch, None if it could."""
    try:
        text = (folder / "fault").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
    return text.partition("\n")[0]


def _parse(path: Path) -> Record:
    record = Record()
    names: dict[int, Sequence[str]] = {}
    with path.open(encoding="utf-8") as file:
        for line in file:
            try:
                row = json.loads(line)
            except ValueError:
                continue
            kind = row.pop("kind")
            if kind == "step":
                record.steps.append(row)
                record.names.append(dict(names))
            elif kind == "optimizer":
                names[row["number"]] = row["names"]
                record.optimizers.setdefault(row["number"], row)
            elif kind == "scheduler":
                record.schedulers.setdefault(row["number"], row)
            elif kind == "labels":
                if row["classes"] > record.labels.get("classes", 0):
                    record.labels = row
            elif kind == "nonfinite":
                record.nonfinite_operation = row["operation"]
            elif kind == "dropped":
                record.dropped.append(row)
            elif kind == "fault":
                record.faults.append(row["fault"])
            elif kind in ("begin", "end"):
                setattr(record, kind, row)
    return record


def unpack(text: str) -> FloatArray:
    """Return packed numbers as (n,) float64."""
    return np.frombuffer(base64.b64decode(text), dtype="<f8").astype(np.float64)


def gathered(record: Record, step: int, key: str, layers: Mapping[str, int]) -> FloatArray:
    """Return one statistic of every layer at a step; NaN where no optimizer stepped it.

    Parameters
    ----------
    key : str
        ``raw``, ``applied``, ``weights`` or ``updates``.
    layers : mapping
        Name to its place.
    """
    found = np.full(len(layers), np.nan)
    for part in record.steps[step]["parts"]:
        names = record.names[step][part["optimizer"]]
        values = unpack(part[key])
        if len(values) == len(names):
            found[[layers[name] for name in names]] = values
    return found
