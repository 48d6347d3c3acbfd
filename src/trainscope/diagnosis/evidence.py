"""What the rules of :mod:`trainscope.diagnosis.causes` ask of an incident, and what a case for a cause is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trainscope.core.finding import Finding
from trainscope.core.run import LayerTable, Run
from trainscope.diagnosis.departures import LEAST_HISTORY, LEVEL
from trainscope.diagnosis.looking import BAD_GRADIENT, ITSELF, STOPPED
from trainscope.diagnosis.signs import Cause, Sign, Stage
from trainscope.diagnosis.watched import LAYERS, LOAD, SERIES

BATCH = tuple(name for name, watched in SERIES.items() if watched.stage is Stage.DATA)
HALF_AGAIN = 1.5
"""Least rise, as a factor, that fits another sign without being one itself."""
_WORDS: Mapping[str, str] = {ITSELF: LAYERS["weight_l2_norm"].words, BAD_GRADIENT: "gradient", "shares": LOAD.words}
"""What signals are called that no range is kept for, or not under their own name."""


@dataclass(frozen=True, slots=True)
class Case:
    """One rule's case for a cause."""

    cause: Cause
    strength: float
    """About 1 is a hint, 2 a pattern that fits, 4 a pattern that little else makes, 5 an exact fact."""
    title: str
    because: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    where: str | None = None
    """Layer or parameter."""
    fixes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """The signs of one incident, and the run they are of."""

    signs: tuple[Sign, ...]
    """In order."""
    run: Run
    findings: Mapping[str, Finding]
    """Detector id to its gravest finding in this incident."""

    def first(self, *stages: Stage, signal: str | None = None, rose: bool | None = None) -> Sign | None:
        """Return the first sign of these stages (and this signal, and direction)."""
        for sign in self.signs:
            right = sign.stage in stages and (signal is None or sign.signal == signal)
            if right and (rose is None or sign.event.startswith("rose") is rose):
                return sign
        return None

    def all_of(self, signal: str) -> tuple[Sign, ...]:
        """Return every sign of one signal, in order."""
        return tuple(s for s in self.signs if s.signal == signal)

    def detector(self, *ids: str) -> Sign | None:
        """Return the first sign that is a finding of one of these detectors."""
        return next((s for s in self.signs if s.detector in ids), None)

    def is_everywhere(self, sign: Sign) -> bool:
        """Tell whether all layers stopped being finite at once: clipping spreads one NaN to all, and none is first."""
        if sign.event != STOPPED or self.run.layers is None:
            return False
        same = {s.where for s in self.signs if (s.signal, s.step, s.event) == (sign.signal, sign.step, STOPPED)}
        table = self.run.layers  # modules without parameters stand in it for their activations
        return len(same) > 1 and same >= {n for n in table.layers() if len(table.series(n, "grad_l2_norm"))}

    @property
    def loss(self) -> Sign | None:
        """The first sign in the loss."""
        return self.first(Stage.LOSS)

    @property
    def trouble(self) -> Sign | None:
        """The first sign of harm: in gradient, activations, loss or evaluation."""
        return self.first(Stage.GRADIENT, Stage.ACTIVATION, Stage.LOSS, Stage.EVAL)

    @property
    def rate_leap(self) -> Sign | None:
        """The learning rate's leap upwards."""
        found = self.first(Stage.SCHEDULE, signal="learning_rate")
        return found if found is not None and ("rose" in found.event or "jumps" in found.event) else None

    @property
    def has_batches(self) -> bool:
        """Whether the run says anything about its batches."""
        return any(self.run.get(name) is not None for name in BATCH)

    @property
    def interval(self) -> int:
        """Steps from one point of the loss to the next."""
        loss = self.run.get("train/loss")
        return 1 if loss is None or len(loss) < 2 else int(np.median(np.diff(loss.step)))

    def has(self, name: str) -> bool:
        """Tell whether the run has a series."""
        return self.run.get(name) is not None

    @property
    def has_layers(self) -> bool:
        """Whether the run has statistics of single layers."""
        return self.run.layers is not None


def said(sign: Sign) -> str:
    """Return a sign as a sentence without a full stop."""
    known = LAYERS.get(sign.signal) or SERIES.get(sign.signal)
    subject = _WORDS.get(sign.signal, sign.signal) if known is None else known.words
    of = f" of {sign.where}" if sign.where is not None and sign.detector is None else ""
    when = "" if "step" in sign.event else f" at step {sign.step}"
    return f"{'' if sign.is_sentence else subject + of + ' '}{sign.event}{when}"


def headline(sign: Sign) -> str:
    """Return what a sign says first, without the numbers behind a colon or semicolon."""
    return re.split(r"[:;] ", said(sign), maxsplit=1)[0]


def because(*signs: Sign | None) -> tuple[str, ...]:
    """Return those signs that are there as sentences, each once."""
    return tuple(dict.fromkeys(said(s) for s in signs if s is not None))


def changed_before(e: Evidence, step: int) -> Sign | None:
    """Return what moved before a step and was no harm yet: learning rate, update, weights."""
    for sign in e.signs:
        if sign.signal == ITSELF and sign.step <= step:
            return sign
        leap = sign.stage is Stage.SCHEDULE and sign is e.rate_leap and sign.step <= step
        if leap or (sign.stage is Stage.UPDATE and sign.step < step):
            return sign
    return None


def fell_at_once(run: Run, name: str, step: int, share: float) -> bool:
    """Tell whether a series fell under `share` of its value from one point to the next, at `step`."""
    series = run.get(name)
    if series is None:
        return False
    at = int(np.searchsorted(series.step, step))
    return 0 < at < len(series) and bool(series.value[at] < share * series.value[at - 1])


def is_highest_at(run: Run, name: str, step: int) -> bool:
    """Tell whether a series is at `step` half as large again as usual, and larger than at any point just before."""
    series = run.get(name)
    if series is None:
        return False
    at = int(np.searchsorted(series.step, step))
    before = series.value[max(0, at - LEVEL) : at]
    if at == len(series) or series.step[at] != step or len(before) < LEAST_HISTORY:
        return False
    return bool(series.value[at] > max(float(np.max(before)), HALF_AGAIN * float(np.median(before))))


def absent(evidence: Evidence, *stages: Stage) -> tuple[str, ...]:
    """Return what the run has no data for, in the order of the stages."""
    words = {
        Stage.DATA: (evidence.has_batches, "batch statistics (trainscope smoke and the recorder keep them)"),
        Stage.SCHEDULE: (evidence.has("learning_rate"), "the learning rate"),
        Stage.UPDATE: (
            evidence.has("optimizer/update_norm") or evidence.has_layers,
            "update and optimizer state (the recorder keeps them)",
        ),
        Stage.GRADIENT: (evidence.has("train/grad_norm"), "the gradient norm"),
        Stage.ACTIVATION: (_has_activations(evidence.run), "activations and attention (the recorder keeps them)"),
        Stage.LOSS: (evidence.has("train/loss"), "the training loss"),
        Stage.EVAL: (
            evidence.has("eval/loss") or evidence.has("smoke/eval_cross_entropy"),
            "an evaluation loss",
        ),
    }
    return tuple(text for stage, (there, text) in words.items() if stage in stages and not there)


def _has_activations(run: Run) -> bool:
    if run.layers is None or "act_std" not in run.layers.metrics():
        return False
    return any(len(run.layers.series(layer, "act_std")) for layer in run.layers.layers())


def usual_ratio(table: LayerTable, metric: str, step: int, layer: str | None = None) -> float | None:
    """Return how large a statistic is at a step over what it was before: of one layer, or of the median layer."""
    found = []
    for name in table.layers() if layer is None else (layer,):
        series = table.series(name, metric)
        at = int(np.searchsorted(series.step, step))
        if LEAST_HISTORY <= at < len(series) and series.step[at] == step:
            usual = float(np.median(series.value[max(0, at - LEVEL) : at]))
            if usual > 0 and np.isfinite(series.value[at]):
                found.append(float(series.value[at]) / usual)
    return float(np.median(found)) if found else None


def parts(evidence: Sequence[Sign], step: int, signal: str) -> tuple[Sign, ...]:
    """Return the signs of one signal at exactly one step."""
    return tuple(s for s in evidence if s.signal == signal and s.step == step)
