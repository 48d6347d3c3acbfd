"""Metrics that are means since the beginning of the epoch, as Keras, MXNet and many loops print them.

Such a series starts afresh each epoch and then moves less and less, which looks like a spike at each beginning and
hides what happens at the end. It says no more than its last value of each epoch, the mean of that epoch.

Algorithm
    A mean of k values moves by about 1/k of their spread. A column is taken for one if within most epochs its moves in
    the first quarter are larger than those in the last quarter by half the ratio that this gives, or more.
Misses
    Epochs of fewer than eight lines. Means that wander as much as they settle are left as they are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trainscope.core.run import FloatArray, Note
from trainscope.readers.notes import counted, quoted
from trainscope.readers.table import ABSENT, Column
from trainscope.readers.vocabulary import is_clockwork

_FEWEST_LINES = 8
"""Lines of an epoch that show whether a series settles."""
_FEWEST_EPOCHS = 3
_SETTLES = 0.5
"""Share of the ratio between early and late moves that a mean of independent values has."""
_MOST_EPOCHS = 0.7
_WHOLE = 0.5
"""Share of an epoch's usual lines from which its mean counts, if the run ended in it."""


def keep_epoch_means(columns: dict[str, Column], turn: FloatArray) -> tuple[dict[str, Column], list[Note]]:
    """Return the columns with one value an epoch where they hold means since its beginning, and what was done.

    Parameters
    ----------
    columns : dict of str to Column
        The metrics.
    turn : (n,) float64 array
        Which epoch each row is of, NaN where unknown.
    """
    out, found = dict(columns), []
    for name, column in columns.items():
        rows = np.flatnonzero(column.has & np.isfinite(turn))
        if is_clockwork(name) or len(rows) < _FEWEST_LINES * _FEWEST_EPOCHS:
            continue
        bounds = np.flatnonzero(np.diff(turn[rows], prepend=np.nan) != 0)
        sizes = np.diff(np.append(bounds, len(rows)))
        if not _settles(column.value[rows], bounds, sizes):
            continue
        ends = bounds + sizes - 1
        # An epoch that broke off counts if it had lasted, or if it broke off at NaN.
        last = ends[(sizes >= _WHOLE * np.median(sizes)) | ~np.isfinite(column.value[rows[ends]])]
        state = np.where(np.isin(np.arange(len(turn)), rows[last]), column.state, ABSENT).astype(np.uint8)
        out[name] = Column(np.where(state > ABSENT, column.value, np.nan), state)
        found.append(name)
    if not found:
        return out, []
    says = "is a mean" if len(found) == 1 else "are means"
    message = f"{quoted(found)} {says} since the beginning of the epoch; the last value of each epoch was kept"
    return out, [Note("running_mean", message, len(found))]


def keep_last_of_evaluations(
    columns: dict[str, Column], step: FloatArray, training: NDArray[np.bool_]
) -> tuple[dict[str, Column], list[Note]]:
    """Return the columns with one value a step where they stand beside the training: the last of each evaluation.

    Parameters
    ----------
    columns : dict of str to Column
        The metrics.
    step : (n,) float64 array
        The step of each row; rows of an evaluation have that of the training row before.
    training : (n,) bool array
        Which rows hold the main metric.
    """
    out, lost = dict(columns), 0
    for name, column in columns.items():
        rows = np.flatnonzero(column.has)
        if len(rows) < 2 or training[rows].any():
            continue
        early = rows[:-1][step[rows[1:]] == step[rows[:-1]]]
        if len(early):
            state = column.state.copy()
            state[early] = ABSENT
            out[name] = Column(np.where(state > ABSENT, column.value, np.nan), state)
            lost = max(lost, len(early))
    if not lost:
        return out, []
    message = f"{counted(lost, 'line stands', 'lines stand')} within an evaluation; the last of each was kept"
    return out, [Note("evaluation_lines", message, lost)]


def _settles(value: FloatArray, bounds: NDArray[np.int64], sizes: NDArray[np.int64]) -> bool:
    early, late, expected = [], [], []
    for start, size in zip(bounds.tolist(), sizes.tolist(), strict=True):
        if size < _FEWEST_LINES:
            continue
        moves = np.abs(np.diff(value[start : start + size]))
        quarter = max(2, size // 4)
        first, final = moves[:quarter], moves[-quarter:]
        if np.isfinite(first).all() and np.isfinite(final).all() and first.max() > 0:
            early.append(float(first.mean()))
            late.append(float(final.mean()))
            expected.append(_ratio(size, quarter))
    if len(early) < _FEWEST_EPOCHS:
        return False
    first, final, least = np.array(early), np.array(late), _SETTLES * np.array(expected)
    return bool(first.sum() >= (least * final).sum() and (first >= least * final).mean() >= _MOST_EPOCHS)


def _ratio(size: int, quarter: int) -> float:
    """Return how much larger the first moves of a mean of `size` independent values are than its last ones."""
    moves = 1 / np.arange(2, size + 1)
    return float(moves[:quarter].mean() / moves[-quarter:].mean())
