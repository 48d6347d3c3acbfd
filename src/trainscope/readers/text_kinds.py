"""The kinds of line that hold metrics: what one print statement of a training wrote.

Algorithm
    Lines whose numbers have the same names are one kind, whatever else the lines say. A kind holds metrics if it
    recurs and one of its names is that of a metric; or if it counts steps or epochs beside values of any name; or
    if its lines stand directly beside such lines (records over several lines). A text is a log if some metric
    changes while a counter moves, or recurs often without one. Lines that look like source code are never taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trainscope.core.metrics import LOSS_KINDS, canonical, kind
from trainscope.core.metrics import Kind as Quantity
from trainscope.core.run import FloatArray, IntArray
from trainscope.readers.text_fields import Field, counts_what
from trainscope.readers.text_groups import FEWEST, PLAIN, LineKind, kinds_of, without_rows_of_other_ranks
from trainscope.readers.text_lines import Lines
from trainscope.readers.text_words import Role, is_known
from trainscope.readers.vocabulary import PHASES, is_clockwork

_FEWEST_UNCOUNTED = 5
"""The same for lines without a counter, which a text that is no log can have too."""

_BESIDE = 0.8
"""Share of a kind's lines that must stand beside lines of metrics."""

_MANY = 10

_JUDGED = LOSS_KINDS | {Quantity.REWARD}

_HELD_OUT = frozenset(name for name in PLAIN if name.startswith("eval/"))

_ENOUGH = 2000
"""Lines of a kind that show where it stands."""


def metric_kinds(lines: Lines) -> tuple[list[LineKind], list[LineKind]]:
    """Return the kinds of line that hold metrics, in the order of their first lines; none if the text is no log.

    The second list is of progress bars, which only count.
    """
    candidates = kinds_of(lines)
    candidates = _counting([without_rows_of_other_ranks(k) for k in candidates])
    sure = [k for k in candidates if _is_sure(k)]
    if not any(_is_evidence(k) for k in sure) and not _headed(sure, candidates):
        return [], []
    rest = [k for k in candidates if not any(k is s for s in sure)]
    sure = _in_turn(sure)
    kinds = _without_running_bars(sure + _beside(sure, rest))
    bars = [k for k in rest if not any(k is t for t in kinds) and any(f.role is Role.TOTAL for f in k.fields)]
    return sorted(kinds, key=lambda k: int(k.line[0])), bars


def _counting(kinds: Sequence[LineKind]) -> list[LineKind]:
    """Mark the kinds that count: a bar's last line always says 20/20, but its other lines show that it moves."""
    moving = {counts_what(k.fields[i]) for k in kinds for i in k.counters() if _moves(k.values[:, i])}
    return [replace(k, counts=any(counts_what(k.fields[i]) in moving for i in k.counters())) for k in kinds]


def _is_sure(k: LineKind) -> bool:
    if len(k) < FEWEST and not k.counts:
        return False
    values = [k.fields[i] for i in k.metrics()]
    known = [f for f in values if is_known(f.name) and not _is_bare_side(f, k)]
    if known:
        return True
    named = any(f.role in (Role.STEP, Role.EPOCH) for f in k.fields)
    return named and bool(values) and any(f.strict and not is_clockwork(f.name) for f in values)


def _is_bare_side(f: Field, k: LineKind) -> bool:
    """Tell whether a name is a lone "train": the class of a detector as often as anything else."""
    return f.name.lower() in PHASES and len(k.fields) == 1


def _is_evidence(k: LineKind) -> bool:
    """Tell whether lines can only be of a training: a metric that changes with a counter, or again and again."""
    counted = k.counts
    if len(k) < (FEWEST if counted else _FEWEST_UNCOUNTED):
        return False
    for i in k.metrics():
        f = k.fields[i]
        if not is_known(f.name) or kind(f.name) is Quantity.LEARNING_RATE or _is_bare_side(f, k):
            continue
        # Without a counter the name must be beyond doubt: prose says "returns 1" again and again too.
        sure = f.strict and (kind(f.name) in _JUDGED or canonical(f.name) in PLAIN)
        if counted or (sure and _changes(k.values[:, i])):
            return True
    # Names that nobody knows, but steps within epochs: what else than a training counts so?
    values = [i for i in k.metrics() if k.fields[i].strict and not is_clockwork(k.fields[i].name)]
    roles = {k.fields[i].role for i in k.counters() if _moves(k.values[:, i])}
    return len(k) >= _MANY and {Role.STEP, Role.EPOCH} <= roles and any(_changes(k.values[:, i]) for i in values)


def _headed(sure: Sequence[LineKind], candidates: Sequence[LineKind]) -> bool:
    """Tell whether lines of metrics follow lines that count: records with a header."""
    counting = [k for k in candidates if k.counts]
    if not counting:
        return False
    headers = np.sort(np.concatenate([k.line for k in counting]))
    for k in sure:
        known = any(
            is_known(k.fields[i].name) and kind(k.fields[i].name) is not Quantity.LEARNING_RATE for i in k.metrics()
        )
        before = np.searchsorted(headers, k.line) - 1
        distance = k.line - headers[np.maximum(before, 0)]
        near = (before >= 0) & (distance > 0) & (distance <= 60)
        if known and near.mean() >= _BESIDE and _turns(headers[before[near]]) >= FEWEST:
            return True
    return False


def _in_turn(sure: Sequence[LineKind]) -> list[LineKind]:
    """Leave out lines that neither count nor come in turn with those that do: settings, summaries, best values."""
    counting = [k for k in sure if k.counts]
    if not counting:
        return list(sure)
    said = {(_side(k.phase), k.fields[i].name) for k in counting for i in k.metrics()}
    anchors = np.sort(np.concatenate([k.line for k in counting]))
    out = []
    for k in sure:
        if k.counts:
            out.append(k)
            continue
        names = [k.fields[i].name for i in k.metrics()]
        new = {(_side(k.phase), name) for name in names} - said
        turns = _turns(np.searchsorted(anchors, k.line))
        few = len(k) < _FEWEST_UNCOUNTED
        plain = any(canonical(name) in PLAIN for name in names)
        if turns >= max(FEWEST, 0.5 * len(k)) and len(new) == len(names) and (plain or not few):
            out.append(k)
    return out


def _without_running_bars(kinds: list[LineKind]) -> list[LineKind]:
    """Leave out a bar's lines within the epoch where its last line has the same metrics and those of validation.

    So does Keras, and what it shows within the epoch are means since its beginning.
    """
    finals = [k for k in kinds if _is_final(k)]
    out = []
    for k in kinds:
        names = {k.fields[i].name for i in k.metrics() if is_known(k.fields[i].name)}
        bar = any(f.role is Role.PROGRESS for f in k.fields) and not _is_final(k)
        if not (bar and any(names <= {f.name for f in final.fields} for final in finals)):
            out.append(k)
    return out


def _is_final(k: LineKind) -> bool:
    """Tell whether the lines are those that end a pass: n is N, and metrics of validation are there."""
    ends = [i for i, f in enumerate(k.fields) if f.role is Role.TOTAL and k.fields[i - 1].role is Role.PROGRESS]
    if not ends or not any(f.role is Role.VALUE and canonical(f.name) in _HELD_OUT for f in k.fields):
        return False
    return bool((k.values[:, ends[0]] == k.values[:, ends[0] - 1]).all())


def _turns(place: IntArray) -> int:
    """Return how many different places an ascending array holds."""
    return int(np.count_nonzero(np.diff(place))) + 1 if len(place) else 0


def _side(phase: str) -> str:
    return "" if phase == "train" else phase


def _moves(value: FloatArray) -> bool:
    # A column that moves at all mostly moves at its beginning, and to look there costs nothing.
    return _takes_values(value[:_ENOUGH]) or _takes_values(value)


def _takes_values(value: FloatArray) -> bool:
    """Tell whether an array holds ``FEWEST`` different finite numbers."""
    rest = value[np.isfinite(value)]
    for _ in range(FEWEST - 1):
        rest = rest[rest != rest[:1]]
    return len(rest) > 0


def _changes(value: FloatArray) -> bool:
    return _moves(value) or not np.isfinite(value).all()


def _beside(sure: Sequence[LineKind], rest: Sequence[LineKind]) -> list[LineKind]:
    """Return the kinds whose lines stand in one block with lines that are sure, over and over."""
    found: list[LineKind] = []
    waiting = list(rest)
    size = max((int(k.line[-1]) for k in (*sure, *rest)), default=0) + 5
    while waiting:
        taken = np.zeros(size, bool)
        for k in (*sure, *found):
            taken[k.line + 2] = True
        new = [
            k
            for k in waiting
            if len(k.fields) <= 4 and len(k) >= _FEWEST_UNCOUNTED and _touch(k.line[:_ENOUGH], taken) >= _BESIDE
        ]
        if not new:
            break
        found += new
        waiting = [k for k in waiting if not any(k is n for n in new)]
    return found


def _touch(line: IntArray, taken: NDArray[np.bool_]) -> float:
    """Return the share of `line` that stands within two lines of those marked in `taken`, which is shifted by two."""
    near = taken[line] | taken[line + 1] | taken[line + 3] | taken[line + 4]
    return float(near.mean())
