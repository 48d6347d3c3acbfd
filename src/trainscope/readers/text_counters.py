"""What the lines of a text log count, and where a count starts again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainscope.core.run import FloatArray
from trainscope.readers.text_fields import Field, counts_what
from trainscope.readers.text_groups import LineKind
from trainscope.readers.text_records import Records
from trainscope.readers.text_words import Role
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
class Counter:
    """One counter over the records."""

    field: Field
    value: FloatArray
    """(records,) NaN where a record does not say it."""
    total: FloatArray
    """(records,) the N of n/N, NaN where none is said."""


def counters_of(kinds: Sequence[LineKind], records: Records) -> list[Counter]:
    """Return every counter of the lines, by what it counts, over the records."""
    places: dict[tuple[Role, str], list[tuple[int, int]]] = {}
    for number, k in enumerate(kinds):
        for i in k.counters():
            places.setdefault(counts_what(k.fields[i]), []).append((number, i))
    return [_counter(found, kinds, records) for found in places.values()]


def _counter(places: Sequence[tuple[int, int]], kinds: Sequence[LineKind], records: Records) -> Counter:
    """Return what the fields at these places, of which kind and which of its fields, count over the records."""
    first, i = places[0]
    totals = [
        (number, at + 1)
        for number, at in places
        if at + 1 < len(kinds[number].fields) and kinds[number].fields[at + 1].role is Role.TOTAL
    ]
    return Counter(kinds[first].fields[i], *(joined(where, kinds, records) for where in (places, totals)))


def joined(places: Sequence[tuple[int, int]], kinds: Sequence[LineKind], records: Records) -> FloatArray:
    """Return (records,) what the fields at these places say, the last one of each record; NaN where none does."""
    if len(places) == 1:
        ((number, i),) = places
        return records.spread(number, kinds[number].values[:, i])
    if not places:
        return np.broadcast_to(np.nan, records.count)
    out = np.full(records.count, np.nan)
    for number, i in places:
        out[records.of[number]] = kinds[number].values[:, i]
    return out


def of_bar(bar: LineKind, records: Records) -> Counter | None:
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
    return Counter(bar.fields[i - 1], value, np.full(records.count, ends[np.argmax(counts)]))


def carried(value: FloatArray) -> FloatArray:
    """Return (n,) values with the last known one wherever none is known."""
    if np.isfinite(value).all():
        return value
    at = np.maximum.accumulate(np.where(np.isfinite(value), np.arange(len(value)), -1))
    return np.where(at >= 0, value[np.maximum(at, 0)], np.nan)


def own_counter(counters: Sequence[Counter], training: NDArray[np.bool_]) -> tuple[Counter, Counter | None] | None:
    """Return the counter of the training records, and the epoch it starts again with, if it does."""
    usable = [c for c in counters if _is_usable(_given(c.value, training), int(np.count_nonzero(training)))]
    steps = sorted((c for c in usable if c.field.role is not Role.EPOCH), key=_priority)
    epoch = next((c for c in usable if c.field.role is Role.EPOCH), None)
    for c in steps:
        given = _given(c.value, training)
        falls = np.count_nonzero(given[1:] < given[:-1])
        if falls <= 2 or falls / (len(given) - 1) <= 0.01:
            return c, epoch if falls else None
    if steps:
        return steps[0], epoch
    return (epoch, None) if epoch is not None else None


def _priority(c: Counter) -> tuple[int, int]:
    role = 0 if c.field.role is Role.STEP else 1
    if "timesteps" in c.field.name.lower():
        return role, -1  # of two counters in reinforcement learning, what the axis of every plot is
    return role, _ORDER.get(plain_name(c.field.name), len(_ORDER))


def _given(value: FloatArray, rows: NDArray[np.bool_]) -> FloatArray:
    """Return the numbers that these rows say."""
    there = np.isfinite(value) & rows
    return value if there.all() else value[there]


def _is_usable(given: FloatArray, rows: int) -> bool:
    if len(given) < _SURE * rows or len(given) < 2:
        return False
    whole = (given == np.floor(given)) & (np.abs(given) < 2.0**53)
    return bool(whole.all()) and bool((given[1:] > given[:-1]).any())


def numbered(turn: FloatArray, count: FloatArray) -> FloatArray:
    """Return the number of each row's epoch as they come, so that one that was run twice is two."""
    rows = np.flatnonzero(np.isfinite(turn) & np.isfinite(count))
    new = np.zeros(len(turn))
    new[rows[1:]] = (np.diff(turn[rows]) != 0) | (np.diff(count[rows]) < 0)
    return np.where(np.isfinite(turn), np.cumsum(new), np.nan)


def is_shuffled(value: FloatArray) -> bool:
    """Tell whether a counter goes up and down all the time, as when several processes write."""
    given = value[np.isfinite(value)]
    falls = np.flatnonzero(np.diff(given) < 0)
    return len(falls) >= _MANY_FALLS and float(np.median(np.diff(falls))) < _SHORT_RISE


def epoch_length(counter: Counter, epoch: Counter, training: NDArray[np.bool_]) -> int:
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


def pass_length(counter: Counter, training: NDArray[np.bool_]) -> int:
    """Return the steps of a pass where the counter starts again only after it came to its end, else 0.

    The end is the N of n/N, or where no N is said, what it came to each time.
    """
    step = _given(counter.value, training)
    falls = np.flatnonzero(step[1:] < step[:-1])
    if len(falls) < 2:
        return 0
    rows = np.flatnonzero(training & np.isfinite(counter.value))
    total = counter.total[rows]
    interval = np.median(np.diff(step)[np.diff(step) > 0]) if (np.diff(step) > 0).any() else 1
    said = total[np.isfinite(total)]
    end = float(said[0]) if len(said) >= _SURE * len(rows) and (said == said[0]).all() else float(np.max(step[falls]))
    again = np.diff(np.concatenate(([-1], falls)))
    if len(said) < _SURE * len(rows) and np.median(again) < _SHORTEST_PASS:
        return 0
    reached = np.abs(step[falls] - end) < 2 * interval
    begins = step[falls + 1] <= step.min() + interval
    return int(end) if (reached & begins).mean() >= _SURE else 0
