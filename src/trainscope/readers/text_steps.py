"""The step of every record of a text log, from whatever its lines count.

Algorithm
    The counter is looked for on the lines of the main metric (the loss with the most lines): a step that goes up
    through the whole run, else one that starts again each epoch, which is counted on (epoch times length plus step),
    else whole epochs. A counter without epochs that starts again only after it reached its end counts passes. Where
    those lines count nothing, what was counted last above them holds, on a line of its own or by a progress bar.
    Records of other kinds say their own step if it fits between the steps around it, else they get the step of the
    record before.
Misses
    A counter that starts again each epoch in a log that names neither the epoch nor the end is taken for restarts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainscope.core.metrics import Kind as Quantity
from trainscope.core.metrics import canonical, kind
from trainscope.core.run import FloatArray, IntArray, Note
from trainscope.readers.notes import counted, shown
from trainscope.readers.text_counters import (
    Counter,
    carried,
    counters_of,
    epoch_length,
    is_shuffled,
    numbered,
    of_bar,
    own_counter,
    pass_length,
)
from trainscope.readers.text_groups import LineKind
from trainscope.readers.text_records import Records
from trainscope.readers.text_words import Role


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """What the records of a text are counted by."""

    kind: str
    """``step``, ``epoch`` or ``row``."""
    value: FloatArray
    """(records,) NaN where unknown."""
    epoch: FloatArray | None
    """(records,) where the log says it beside steps."""
    said: str
    """What it was taken from, for the note."""
    training: NDArray[np.bool_]
    """(records,) where the main metric is."""
    turn: FloatArray | None = None
    """(records,) which epoch or pass each is of, where the counter starts again with each."""
    notes: tuple[Note, ...] = ()


def steps_of(kinds: Sequence[LineKind], bars: Sequence[LineKind], records: Records) -> Steps:
    """Return the step of every record."""
    main = main_kinds(kinds)
    counters = counters_of(kinds, records)
    training = np.zeros(records.count, bool)
    for i in main:
        training[records.of[i]] = True
    found = own_counter(counters, training)
    if found is None:
        above = [_of_lines_around(c, training) for c in counters]
        above += [c for bar in bars if (c := of_bar(bar, records)) is not None]
        found = own_counter(above, training)
    if found is None:
        return Steps("row", np.full(records.count, np.nan), None, "the order of the lines", training)
    return _settled(found, counters, training)


def _of_lines_around(c: Counter, training: NDArray[np.bool_]) -> Counter:
    """Return what a counter said last above each record, or below it where its lines end the records."""
    rows, said = np.flatnonzero(training), np.flatnonzero(np.isfinite(c.value))
    closes = len(rows) and len(said) and rows[0] < said[0] and rows[-1] < said[-1]
    if not closes or not (np.searchsorted(said, rows[1:]) > np.searchsorted(said, rows[:-1])).all():
        return Counter(c.field, carried(c.value), carried(c.total))
    return Counter(c.field, carried(c.value[::-1])[::-1], carried(c.total[::-1])[::-1])


def main_kinds(kinds: Sequence[LineKind]) -> list[int]:
    """Return the kinds of line that hold the main metric: the training loss, or what the log has most of."""
    best: tuple[int, int] = (-1, 0)
    name = ""
    totals: dict[str, int] = {}
    for k in kinds:
        for i in k.metrics():
            column = k.column[i]
            if column:
                totals[column] = totals.get(column, 0) + len(k)
    ranks = {
        Quantity.LOSS: 4,
        Quantity.LOSS_PART: 3,
        Quantity.ADVERSARIAL_LOSS: 3,
        Quantity.REWARD: 3,
        Quantity.RL_LOSS: 3,
        Quantity.EVAL_LOSS: 1,
        Quantity.SCORE: 2,
    }
    most = max(totals.values(), default=0)
    judged = {column: ranks.get(kind(column), 0) for column in totals}
    if max(judged.values(), default=0) < ranks[Quantity.LOSS_PART]:  # else a "cost" is time or money
        judged = {column: ranks.get(kind(canonical(column) or column), 0) for column in totals}
    for column, count in totals.items():
        rank = judged[column] if 10 * count >= most else -1
        if (rank, count) > best:
            best, name = (rank, count), column
    return [n for n, k in enumerate(kinds) if name in k.column]


def _settled(found: tuple[Counter, Counter | None], counters: Sequence[Counter], training: NDArray[np.bool_]) -> Steps:
    counter, epoch = found
    said = shown(counter.field.name) if counter.field.name else "the progress n/N"
    value, notes = counter.value, []
    if counter.field.role is Role.EPOCH:
        return Steps("epoch", _placed(value, training), None, said, training)
    length = epoch_length(counter, epoch, training) if epoch is not None else pass_length(counter, training)
    if not length and is_shuffled(value[training]):
        note = Note("several_writers", f"{said} goes up and down: lines of several processes; their order was kept")
        return Steps("row", np.full(len(value), np.nan), None, "the order of the lines", training, None, (note,))
    turn = None
    if length and epoch is not None:
        here = carried(epoch.value)
        first = np.nanmin(here[training])
        turn = here - first
        value = value + turn * length
        said = f"{said} and {shown(epoch.field.name)}"
    elif length:
        falls = np.zeros(len(value))
        rows = np.flatnonzero(training & np.isfinite(value))
        falls[rows[1:]] = np.diff(value[rows]) < 0
        turn = np.cumsum(falls)
        value = value + turn * length
    if turn is not None:
        turn = numbered(turn, counter.value)
        message = (
            f"{shown(counter.field.name or 'n/N')} starts again each epoch; steps were counted on, {length} an epoch"
        )
        notes.append(Note("rebuilt_step", message))
    beside = next((c for c in counters if c.field.role is Role.EPOCH), None)
    if not length:
        value = _with_other_counters(value, training, counters)
    place = _placed(value, training)
    return Steps("step", place, None if beside is None else carried(beside.value), said, training, turn, tuple(notes))


def _with_other_counters(value: FloatArray, training: NDArray[np.bool_], counters: Sequence[Counter]) -> FloatArray:
    """Fill in what records of other kinds count by another word: ``step 100: val loss`` between ``iter 100: loss``."""
    out = value.copy()
    for c in counters:
        if c.field.role is Role.STEP and not (training | np.isfinite(out)).all():
            out = np.where(np.isfinite(out) | training, out, c.value)
    return out


def _placed(value: FloatArray, training: NDArray[np.bool_]) -> FloatArray:
    """Give every record a step: its own where it fits, else that of the training record before it."""
    if training.all() and np.isfinite(value).all():
        return value
    anchor = np.where(training, value, np.nan)
    before = carried(anchor)
    # Something stands between what counts and what it counts: "Epoch 7", a warning, "loss: 0.3".
    said = carried(value)
    late = training & ~np.isfinite(value) & (said > before) & ~(said >= carried(anchor[::-1])[::-1])
    value = np.where(late, said, value)
    anchor = np.where(training, value, np.nan)
    before = carried(anchor)
    after = carried(anchor[::-1])[::-1]
    others = ~training & np.isfinite(value)
    high, low = (value >= before) | ~np.isfinite(before), (value <= after) | ~np.isfinite(after)
    # Between two launches, what ends the one and what begins the other both fit.
    fits = others & ((high & low) | ((high | low) & (after < before)))
    rare = others.sum() and fits.sum() < 0.5 * others.sum()
    own = training | (fits & (not rare))
    placed = np.where(own, value, np.nan)
    last = carried(placed)
    first = np.isfinite(placed)
    if first.any():
        last = np.where(np.isfinite(last), last, placed[first][0])
    return last


def describe(steps: Steps, lines: int, metric_lines: int, names: Sequence[tuple[str, str]]) -> Note:
    """Return the note that says what was taken for what."""
    axis = {"step": "the step", "epoch": "the epoch", "row": "the order"}[steps.kind]
    pairs = ", ".join(f"{a} from {shown(b)}" for a, b in names[:6])
    more = f" and {len(names) - 6} more" if len(names) > 6 else ""
    message = (
        f"{counted(metric_lines, 'line', 'lines')} of {lines} hold metrics; {axis} was taken from {steps.said}"
        f"{', ' + pairs + more if pairs else ''}"
    )
    return Note("text_lines", message, metric_lines)


def whole(value: FloatArray) -> IntArray:
    """Return steps as integers, 0 where unknown."""
    return np.where(np.isfinite(value), value, 0).astype(np.int64)
