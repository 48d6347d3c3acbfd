"""What the batches of each step looked like, and which positions of the loader they had.

The names of :mod:`trainscope.probe.batch_statistics` again, because nothing outside the training process loads torch.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from trainscope.core.run import FloatArray
from trainscope.smoke.records import Record

STATISTICS = ("size", "token_entropy", "repetition", "padding", "mean", "std", "non_finite")
"""In the order in which the recorder writes them; the series are called ``batch/<name>``."""
_FIRST = 2
"""Columns before the statistics: loader and position."""


class Batches:
    """The batches of one record, step by step.

    Parameters
    ----------
    record : Record
    """

    def __init__(self, record: Record) -> None:
        steps = [[row for part in step["parts"] for row in part.get("described", ())] for step in record.steps]
        self.loader = _training_loader(steps)
        self._steps = [[row for row in rows if row[0] == self.loader] for rows in steps]
        self._values = [_values(rows) for rows in self._steps]
        every = np.concatenate([np.empty((0, len(STATISTICS))), *self._values])
        self._usual = np.array([_median(column[np.isfinite(column)]) for column in every.T])

    def scalars(self, step: int) -> dict[str, float | int | None]:
        """Return the numbers of a step: of its micro-batches, those farthest from what is usual in the run."""
        positions = [row[1] for row in self._steps[step] if row[1] is not None]
        values = self._values[step]
        found: dict[str, float | int | None] = {
            "batch_index": min(positions) if positions else None,
            "batch/count": len(positions) or None,
        }
        for place, name in enumerate(STATISTICS):
            column = values[:, place]
            present = column[~np.isnan(column)]
            far = np.abs(present - self._usual[place]) if len(present) else present
            found[f"batch/{name}"] = float(present[int(far.argmax())]) if len(present) else None
        return found


def _training_loader(steps: list[list[list[Any]]]) -> int | None:
    """Return the loader that gave most batches, None where no loader gave any."""
    counted = Counter(row[0] for rows in steps for row in rows if row[0] is not None)
    return min(counted, key=lambda number: (-counted[number], number)) if counted else None


def _values(rows: list[list[Any]]) -> FloatArray:
    """Return (n, 7) statistics of micro-batches; NaN where one has none."""
    found = np.full((len(rows), len(STATISTICS)), np.nan)
    for row, numbers in zip(found, rows, strict=True):
        row[: len(numbers) - _FIRST] = numbers[_FIRST:]
    return found


def _median(values: FloatArray) -> float:
    return float(np.median(values)) if len(values) else 0.0
