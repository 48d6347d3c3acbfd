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
from trainscope.core.metrics import kind
from trainscope.core.run import FloatArray, IntArray, Note
from trainscope.readers.notes import counted, shown
from trainscope.readers.text_fields import Field, Role, counts_what
from trainscope.readers.text_kinds import LineKind
from trainscope.readers.text_records import Records
from trainscope.readers.vocabulary import STEP_NAMES, plain_name

_SURE = 0.9
_MOST_EPOCH_FALLS = 0.05
"""An epoch falls where a run is started anew, which is rare."""
_ALIKE = 0.98
"""Epochs may differ by a batch."""
_SHORTEST_PASS = 5
"""Lines; shorter passes without an end are chance."""
_MANY_FALLS = 20
_SHORT_RISE = 3
"""Lines between two falls: fewer, and several processes write."""
_ORDER = {name: rank for rank, name in enumerate(STEP_NAMES)}


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


@dataclass(frozen=True, slots=True, eq=False)
class _Counter:
    """One counter over the records."""

    field: Field
    value: FloatArray
    """(records,) NaN where a record does not say it."""
    total: FloatArray
    """(records,) the N of n/N, NaN where none is said."""


def steps_of(kinds: Sequence[LineKind], bars: Sequence[LineKind], records: Records) -> Steps:
    """Return the step of every record."""
    main = main_kinds(kinds)
    counters = _counters(kinds, records)
    training = np.zeros(records.count, bool)
    for i in main:
        training[records.of[i]] = True
    found = _own(counters, training)
    if found is None:
        carried = [_Counter(c.field, _carried(c.value), _carried(c.total)) for c in counters]
        carried += [c for bar in bars if (c := _of_bar(bar, records)) is not None]
        found = _own(carried, training)
    if found is None:
        return Steps("row", np.full(records.count, np.nan), None, "the order of the lines", training)
    return _settled(found, counters, training)


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
    for column, count in totals.items():
        rank = ranks.get(kind(column), 0) if 10 * count >= most else -1
        if (rank, count) > best:
            best, name = (rank, count), column
    return [n for n, k in enumerate(kinds) if name in k.column]


def _counters(kinds: Sequence[LineKind], records: Records) -> list[_Counter]:
    found: dict[tuple[Role, str], _Counter] = {}
    for k, of in zip(kinds, records.of, strict=True):
        for i in k.counters():
            f = k.fields[i]
            key = counts_what(f)
            if key not in found:
                empty = np.full(records.count, np.nan)
                found[key] = _Counter(f, empty, empty.copy())
            found[key].value[of] = k.values[:, i]
            if i + 1 < len(k.fields) and k.fields[i + 1].role is Role.TOTAL:
                found[key].total[of] = k.values[:, i + 1]
    return list(found.values())


def _of_bar(bar: LineKind, records: Records) -> _Counter | None:
    """Return what a progress bar said last before each record; only a bar over the whole run counts."""
    i = next(i for i, f in enumerate(bar.fields) if f.role is Role.TOTAL)
    ends, counts = np.unique(bar.values[:, i], return_counts=True)
    usual = bar.values[:, i] == ends[np.argmax(counts)]
    if not usual.any() or ends[np.argmax(counts)] < ends.max():
        return None
    line, n = bar.line[usual], bar.values[usual, i - 1]
    if (np.diff(n) < 0).mean() > 0.01:
        return None
    at = np.searchsorted(line, records.line) - 1
    value = np.where(at >= 0, n[np.maximum(at, 0)], np.nan)
    return _Counter(bar.fields[i - 1], value, np.full(records.count, ends[np.argmax(counts)]))


def _carried(value: FloatArray) -> FloatArray:
    at = np.maximum.accumulate(np.where(np.isfinite(value), np.arange(len(value)), -1))
    return np.where(at >= 0, value[np.maximum(at, 0)], np.nan)


def _own(counters: Sequence[_Counter], training: NDArray[np.bool_]) -> tuple[_Counter, _Counter | None] | None:
    """Return the counter of the training records, and the epoch it starts again with, if it does."""
    usable = [c for c in counters if _is_usable(c.value[training])]
    steps = sorted((c for c in usable if c.field.role is not Role.EPOCH), key=_priority)
    epoch = next((c for c in usable if c.field.role is Role.EPOCH), None)
    for c in steps:
        value = c.value[training]
        given = value[np.isfinite(value)]
        if (np.diff(given) < 0).mean() <= 0.01 or (np.diff(given) < 0).sum() <= 2:
            return c, None if epoch is None or not (np.diff(given) < 0).any() else epoch
    if steps:
        return steps[0], epoch
    return (epoch, None) if epoch is not None else None


def _priority(c: _Counter) -> tuple[int, int]:
    role = 0 if c.field.role is Role.STEP else 1
    if "timesteps" in c.field.name.lower():
        return role, -1  # of two counters in reinforcement learning, what the axis of every plot is
    return role, _ORDER.get(plain_name(c.field.name), len(_ORDER))


def _is_usable(value: FloatArray) -> bool:
    given = value[np.isfinite(value)]
    if len(given) < _SURE * len(value) or len(given) < 2:
        return False
    whole = (given == np.floor(given)) & (np.abs(given) < 2.0**53)
    return bool(whole.all()) and bool((given != given[0]).any()) and bool((np.diff(given) > 0).any())


def _settled(
    found: tuple[_Counter, _Counter | None], counters: Sequence[_Counter], training: NDArray[np.bool_]
) -> Steps:
    counter, epoch = found
    said = shown(counter.field.name) if counter.field.name else "the progress n/N"
    value, notes = counter.value.copy(), []
    if counter.field.role is Role.EPOCH:
        return Steps("epoch", _placed(value, training), None, said, training)
    length = _epoch_length(counter, epoch, training) if epoch is not None else _pass_length(counter, training)
    if not length and _is_shuffled(value[training]):
        note = Note("several_writers", f"{said} goes up and down: lines of several processes; their order was kept")
        return Steps("row", np.full(len(value), np.nan), None, "the order of the lines", training, None, (note,))
    turn = None
    if length and epoch is not None:
        here = _carried(epoch.value)
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
    if length:
        turn = _numbered(turn, counter.value)
        message = (
            f"{shown(counter.field.name or 'n/N')} starts again each epoch; steps were counted on, {length} an epoch"
        )
        notes.append(Note("rebuilt_step", message))
    beside = next((c for c in counters if c.field.role is Role.EPOCH), None)
    if not length:
        value = _with_other_counters(value, training, counters)
    place = _placed(value, training)
    return Steps("step", place, None if beside is None else _carried(beside.value), said, training, turn, tuple(notes))


def _numbered(turn: FloatArray, count: FloatArray) -> FloatArray:
    """Number the epochs as they come, so that one that was run twice is two."""
    rows = np.flatnonzero(np.isfinite(turn) & np.isfinite(count))
    new = np.zeros(len(turn))
    new[rows[1:]] = (np.diff(turn[rows]) != 0) | (np.diff(count[rows]) < 0)
    return np.where(np.isfinite(turn), np.cumsum(new), np.nan)


def _is_shuffled(value: FloatArray) -> bool:
    given = value[np.isfinite(value)]
    falls = np.flatnonzero(np.diff(given) < 0)
    return len(falls) >= _MANY_FALLS and float(np.median(np.diff(falls))) < _SHORT_RISE


def _epoch_length(counter: _Counter, epoch: _Counter, training: NDArray[np.bool_]) -> int:
    """Return the steps of an epoch where the counter falls as the epoch rises, else 0."""
    rows = np.flatnonzero(training & np.isfinite(counter.value) & np.isfinite(epoch.value))
    step, at = counter.value[rows], epoch.value[rows]
    falls = np.flatnonzero(np.diff(step) < 0)
    if not len(falls):
        return 0
    rises = at[falls + 1] > at[falls]
    if rises.mean() < 0.5 or (np.diff(at) < 0).mean() > _MOST_EPOCH_FALLS:
        return 0
    total = counter.total[rows]
    given = total[np.isfinite(total)]
    if len(given) > _SURE * len(total) and given.min() >= _ALIKE * given.max() and given.max() >= step.max():
        return int(given.max())
    interval = np.median(np.diff(step)[np.diff(step) > 0]) if (np.diff(step) > 0).any() else 1
    starts = step[falls + 1]
    low = max(1.0, min(float(interval), float(starts.min()))) if len(starts) else 1.0
    return int(step.max() - step.min() + low)


def _pass_length(counter: _Counter, training: NDArray[np.bool_]) -> int:
    """Return the steps of a pass where the counter starts again only after it came to its end, else 0.

    The end is the N of n/N, or where no N is said, what it came to each time.
    """
    rows = np.flatnonzero(training & np.isfinite(counter.value))
    step, total = counter.value[rows], counter.total[rows]
    falls = np.flatnonzero(np.diff(step) < 0)
    if len(falls) < 2:
        return 0
    interval = np.median(np.diff(step)[np.diff(step) > 0]) if (np.diff(step) > 0).any() else 1
    said = total[np.isfinite(total)]
    end = float(said[0]) if len(said) >= _SURE * len(rows) and (said == said[0]).all() else float(np.max(step[falls]))
    again = np.diff(np.concatenate(([-1], falls)))
    if len(said) < _SURE * len(rows) and np.median(again) < _SHORTEST_PASS:
        return 0
    reached = np.abs(step[falls] - end) < 2 * interval
    begins = step[falls + 1] <= step.min() + interval
    return int(end) if (reached & begins).mean() >= _SURE else 0


def _with_other_counters(value: FloatArray, training: NDArray[np.bool_], counters: Sequence[_Counter]) -> FloatArray:
    """Fill in what records of other kinds count by another word: ``step 100: val loss`` between ``iter 100: loss``."""
    out = value.copy()
    for c in counters:
        if c.field.role is Role.STEP:
            out = np.where(np.isfinite(out) | training, out, c.value)
    return out


def _placed(value: FloatArray, training: NDArray[np.bool_]) -> FloatArray:
    """Give every record a step: its own where it fits, else that of the training record before it."""
    anchor = np.where(training, value, np.nan)
    before = _carried(anchor)
    after = _carried(anchor[::-1])[::-1]
    others = ~training & np.isfinite(value)
    fits = others & ((value >= before) | ~np.isfinite(before)) & ((value <= after) | ~np.isfinite(after))
    rare = others.sum() and fits.sum() < 0.5 * others.sum()
    own = training | (fits & (not rare))
    placed = np.where(own, value, np.nan)
    carried = _carried(placed)
    first = np.isfinite(placed)
    if first.any():
        carried = np.where(np.isfinite(carried), carried, placed[first][0])
    return carried


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
