"""Which column each value of a text log belongs to: training and evaluation lines use the same words.

Algorithm
    A line that says "validation" gives its values to ``eval/``, unless their own names say which data they are of.
    Where two kinds of line without such a word share a name, the one with the most lines keeps it. The other one is
    an evaluation if a line such as "evaluating on dev" stands before each block of it; the mean of an epoch if it
    counts epochs alone; else a second metric.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from trainscope.core.metrics import tokens
from trainscope.core.run import IntArray
from trainscope.readers.text_groups import LineKind
from trainscope.readers.text_lines import MASK, Lines
from trainscope.readers.text_words import Role, phase_in
from trainscope.readers.vocabulary import PHASES, is_clockwork

_MOST = 0.8


def named(kinds: Sequence[LineKind], lines: Lines) -> list[LineKind]:
    """Return the kinds with the column of each field."""
    out = [replace(k, column=_columns(k)) for k in kinds]
    main = _main(out)
    markers = _evaluation_markers(out, lines)
    groups: dict[str, dict[object, list[int]]] = {}
    for n, k in enumerate(out):
        for i in k.metrics():
            if k.column[i]:
                groups.setdefault(k.column[i], {}).setdefault(_counting(k), []).append(n)
    for n, k in enumerate(out):
        if k.phase or n in main:
            continue
        columns = list(k.column)
        evaluates = _follows(k.line, markers, out, main) >= _MOST
        for i in k.metrics():
            side = _has_side(columns[i])
            if not columns[i] or side in ("eval", "test") or (side and not _counts_epochs(k)):
                continue
            rivals = groups[columns[i]]
            first = max(rivals, key=lambda key: sum(len(out[m]) for m in rivals[key]))
            second = _counting(k) != first
            if evaluates and not side and (second or not k.counts):
                columns[i] = f"eval/{columns[i]}"
            elif second and _counts_epochs(k):
                columns[i] = f"epoch_mean/{columns[i]}"
            elif second:
                columns[i] = f"{columns[i]}_2"
        out[n] = replace(k, column=tuple(columns))
    return out


def _columns(k: LineKind) -> tuple[str, ...]:
    sides = {_has_side(k.fields[i].name) for i in k.metrics()}
    names = [f.name if f.role is Role.VALUE else "" for f in k.fields]
    bare = [i for i in k.metrics() if not _has_side(names[i]) and not is_clockwork(names[i])]
    phase = k.phase if k.phase != "train" else "train"
    if not phase and sides - {""} in ({"eval"}, {"test"}) and not any("loss" in tokens(names[i]) for i in bare):
        phase = (sides - {""}).pop()
    if phase:
        for i in bare:
            names[i] = f"{phase}/{names[i]}"
    if len(k.fields) == 1 and names[0].lower() in PHASES:
        names[0] = ""
    if any(words[:1] == ("loss",) and words[1:] and words[1] in PHASES for words in map(tokens, names)):
        names = [f"loss {n}" if n.lower() in PHASES else n for n in names]  # "loss train: 2.3, val: 2.5"
    if any("loss" in tokens(name) for name in names):
        # "train=0.1 val=0.9 loss=2.3": whatever the sides hold, it is not the loss.
        names = [f"{PHASES[n.lower()]}/metric" if n.lower() in PHASES else n for n in names]
    return tuple(names)


def _counts_epochs(k: LineKind) -> bool:
    roles = {f.role for f in k.fields}
    return Role.EPOCH in roles and Role.STEP not in roles


def _has_side(name: str) -> str:
    return next((PHASES[w] for w in tokens(name) if w in PHASES), "")


def _counting(k: LineKind) -> frozenset[object]:
    """Return what tells one kind of counting from another: the counters, without how they are written."""
    return frozenset(
        f.role if f.role is Role.EPOCH else (f.role, f.name.lower()) for f in (k.fields[i] for i in k.counters())
    )


def _main(kinds: Sequence[LineKind]) -> set[int]:
    """Return the kinds of the metric that most lines hold."""
    sizes: dict[tuple[str, object], int] = {}
    for k in kinds:
        for i in k.metrics():
            if k.column[i] and not is_clockwork(k.column[i]) and not k.phase:
                key = (k.column[i], _counting(k))
                sizes[key] = sizes.get(key, 0) + len(k)
    if not sizes:
        return set()
    most = max(sizes.values())
    lossy = [key for key, size in sizes.items() if 10 * size >= most and "loss" in " ".join(tokens(key[0]))]
    name, how = max(lossy or sizes, key=lambda key: sizes[key])
    return {n for n, k in enumerate(kinds) if name in k.column and _counting(k) == how}


def _evaluation_markers(kinds: Sequence[LineKind], lines: Lines) -> IntArray:
    """Return the lines that announce an evaluation."""
    metric = np.zeros(len(lines.of), bool)
    for k in kinds:
        if any(k.column):
            metric[k.line] = True
    says = [len(t.text) < 400 and phase_in(t.text.replace(MASK, " ")) in ("eval", "test") for t in lines.templates]
    found = np.array([*says, False], bool)[lines.of]
    return np.flatnonzero(found & ~metric)


def _follows(line: IntArray, markers: IntArray, kinds: Sequence[LineKind], main: set[int]) -> float:
    """Return the share of lines that stand nearer to an announcement than to a line of training above them."""
    training = np.sort(np.concatenate([kinds[n].line for n in main])) if main else np.zeros(0, np.int64)
    if not len(markers):
        return 0.0
    announced = _before(markers, line)
    return float(np.mean(announced > _before(training, line)))


def _before(known: IntArray, line: IntArray) -> IntArray:
    if not len(known):
        return np.full(len(line), -1)
    at = np.searchsorted(known, line) - 1
    return np.where(at >= 0, known[np.maximum(at, 0)], -1)
