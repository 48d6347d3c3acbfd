"""The signature of a broken run: which signs it showed, in which order, and where in the model."""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass
from itertools import combinations

from trainscope.diagnosis.case import Case
from trainscope.diagnosis.signs import Cause, Stage

WHAT, ORDER, WHERE = 0.5, 0.25, 0.25
"""How much of the distance is what was seen, in which order, and where: what counts as much as the other two."""
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Signature:
    """What two runs must share to have broken in the same way."""

    signals: tuple[str, ...]
    """Metrics and layer statistics, or a detector that is about no single one; each once, by first step and stage."""
    found: frozenset[str] = frozenset()
    """Detectors that found them: they tell a spike of the loss from its divergence."""
    stages: tuple[Stage, ...] = ()
    """Stages of a training step that showed it, in that order, each once."""
    places: frozenset[str] = frozenset()
    """Layers that showed it, their numbers left out: ``blocks.*.mlp``."""
    cause: Cause | None = None
    """The most likely cause; not part of the distance, for it follows from the signs."""


def signature(case: Case) -> Signature:
    """Return the signature of a broken run: of its main story, or of its findings where none is told."""
    story = case.main
    if story is None:
        ordered = sorted(case.grave, key=lambda f: (f.start_step is None, f.start_step or 0, f.detector))
        places = frozenset(kind_of_layer(f.layer) for f in ordered if f.layer is not None)
        signals = dict.fromkeys(f.metric or f.detector for f in ordered)
        return Signature(tuple(signals), frozenset(f.detector for f in ordered), (), places)
    # What comes after the loss has shown it is the aftermath, which all broken runs have in common.
    signs = [s for s in story.signs if story.loss_step is None or s.step <= story.loss_step]
    signs.sort(key=lambda s: (s.step, s.stage))
    return Signature(
        tuple(dict.fromkeys(s.signal for s in signs)),
        frozenset(s.detector for s in signs if s.detector is not None),
        tuple(dict.fromkeys(s.stage for s in signs)),
        frozenset(kind_of_layer(s.where) for s in signs if s.where is not None),
        story.cause,
    )


def kind_of_layer(layer: str) -> str:
    """Return a layer's name with its numbers left out: all blocks are one place."""
    return _NUMBER.sub("*", layer)


def distance(a: Signature, b: Signature) -> float:
    """Return how differently two runs broke, from 0 (alike) to 1.

    ``WHAT`` times the Jaccard distance of the signals and the detectors that found them, ``ORDER`` times the
    share of pairs of common signals that come in opposite order, ``WHERE`` times the Jaccard distance of the
    places. Where neither has a place, or fewer than two signals are common, what was seen stands for it.
    """
    what = _jaccard({*a.signals, *a.found}, {*b.signals, *b.found})
    order = _discord(a.signals, b.signals)
    where = _jaccard(a.places, b.places) if a.places or b.places else None
    return WHAT * what + ORDER * (what if order is None else order) + WHERE * (what if where is None else where)


def _jaccard(a: Set[str], b: Set[str]) -> float:
    return 1.0 - len(a & b) / len(a | b) if a | b else 0.0


def _discord(a: tuple[str, ...], b: tuple[str, ...]) -> float | None:
    """Return the share of pairs in opposite order (Kendall's distance), None for fewer than two common signals."""
    common = [name for name in a if name in b]
    if len(common) < 2:
        return None
    pairs = list(combinations(common, 2))
    return sum(b.index(first) > b.index(second) for first, second in pairs) / len(pairs)
