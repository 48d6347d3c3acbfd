"""How far the weights of each layer moved between two steps, and how its gradient changed.

Algorithm
    The recorder counts the weights of a parameter into bins whose edges never move. Of two such histograms,
    each count gets half a weight more (Krichevsky and Trofimov 1981: the Jeffreys prior), so that a bin that
    was empty once gives no infinity, and both are made shares p and q. The Kullback-Leibler divergence
    sum p ln(p / q) is given both ways, in nats: later from earlier is large where weights went to a place
    that was empty, earlier from later where they left one. Layers are ranked by the sum of both, the
    symmetric divergence J of Kullback and Leibler (1951), so that neither direction decides.
Limits
    Merging bins only lowers a divergence, so each figure is a lower bound; the more so the more of the
    weights lie in the two outer bins, which also count all that is beyond them (``beyond``). A permutation
    of the weights is no change. Between histograms on different edges there is no number, only a reason.
Reference
    S. Kullback and R. A. Leibler, On Information and Sufficiency, Ann. Math. Statist. 22(1), 1951.
    R. E. Krichevsky and V. K. Trofimov, The Performance of Universal Encoding, IEEE Trans. Inf. Theory 27(2), 1981.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainscope.core.run import FloatArray, Histograms, HistogramTable, IntArray, Run

PSEUDO_COUNT = 0.5
"""Added to every bin."""
SAME_EDGE = 1e-9
"""Edges closer than this share of their range are one."""


@dataclass(frozen=True, slots=True)
class LayerChange:
    """One layer at two steps."""

    layer: str
    first: int | None
    """Step of the earlier histogram."""
    last: int | None
    forward: float | None = None
    """Divergence of the later histogram from the earlier, nats."""
    backward: float | None = None
    """Divergence of the earlier histogram from the later, nats."""
    beyond: float | None = None
    """Share of the later weights in the two outer bins."""
    weight_norm: tuple[float, float] | None = None
    """L2 norm of the weights, earlier and later."""
    grad_norm: tuple[float, float] | None = None
    """L2 norm of the gradient, earlier and later."""
    reason: str = ""
    """Why there is no divergence."""

    @property
    def symmetric(self) -> float | None:
        """Sum of both directions, nats."""
        return None if self.forward is None or self.backward is None else self.forward + self.backward

    @property
    def grad_ratio(self) -> float | None:
        """Later gradient norm over earlier, None where that says nothing."""
        return None if self.grad_norm is None else ratio(*self.grad_norm)


@dataclass(frozen=True, slots=True)
class WeightChange:
    """All parameters between two steps."""

    first: int
    """The earlier step that was asked for."""
    last: int
    layers: tuple[LayerChange, ...] = ()
    """Largest divergence first; those without a number last, in model order."""
    reason: str = ""
    """Why no layer has a number."""


def ratio(before: float, after: float) -> float | None:
    """Return after over before, None where `before` is 0 or either is no finite number."""
    return after / before if before > 0 and np.isfinite(before) and np.isfinite(after) else None


def divergence(p_counts: FloatArray, q_counts: FloatArray) -> float:
    """Return the Kullback-Leibler divergence of two histograms on the same edges, in nats.

    Parameters
    ----------
    p_counts, q_counts : (bins,) float arrays
        Counts, not negative; ``PSEUDO_COUNT`` is added to each.

    Raises
    ------
    ValueError
        If the shapes differ, or a count is negative or not finite.
    """
    counts = (np.asarray(p_counts, np.float64), np.asarray(q_counts, np.float64))
    if counts[0].shape != counts[1].shape or counts[0].ndim != 1 or not len(counts[0]):
        raise ValueError(f"two histograms of one shape are needed, not {counts[0].shape} and {counts[1].shape}")
    if not all(np.isfinite(c).all() and (c >= 0).all() for c in counts):
        raise ValueError("counts must be finite and not negative")
    p, q = ((c + PSEUDO_COUNT) / (c + PSEUDO_COUNT).sum() for c in counts)
    # Rounding can leave a hair below zero, which no divergence is.
    return max(float(np.sum(p * (np.log(p) - np.log(q)))), 0.0)


def between(run: Run, first: int, last: int) -> WeightChange:
    """Return the change of every layer from `first` to `last`.

    Histograms are taken every so many steps: the last one at or before `first` (else the next after it) and
    the first one at or after `last` (else the one before it) are compared, and each row says which they are.

    Raises
    ------
    ValueError
        If `last` is not after `first`.
    """
    if last <= first:
        raise ValueError(f"step {last} is not after step {first}")
    table = run.layers
    if table is None:
        return WeightChange(first, last, reason=f"{run.format} logs hold no weight histograms; record the run")
    if not isinstance(table, HistogramTable):
        return WeightChange(first, last, reason="this form of a recorded run keeps no weight histograms")
    rows = [row for layer in table.layers() if (row := _layer(table, layer, first, last)) is not None]
    ranked = sorted((r for r in rows if r.symmetric is not None), key=lambda r: -(r.symmetric or 0.0))
    others = [r for r in rows if r.symmetric is None]
    return WeightChange(first, last, (*ranked, *others), "" if ranked else _common_reason(others))


def _layer(table: HistogramTable, layer: str, first: int, last: int) -> LayerChange | None:
    """Return one row, None for a module without weights of its own."""
    found = table.histograms(layer)
    weights, gradients = (table.series(layer, metric) for metric in ("weight_l2_norm", "grad_l2_norm"))
    if not (len(found.step) or len(weights) or len(gradients)):
        return None
    norms = (_ends(weights.step, weights.value, first, last), _ends(gradients.step, gradients.value, first, last))
    at = _bracket(found.step, first, last)
    if at is None:
        return LayerChange(layer, None, None, None, None, None, *norms, reason="no histogram was recorded")
    begin, end = int(found.step[at[0]]), int(found.step[at[1]])
    reason = _why_not(found, *at)
    if reason:
        return LayerChange(layer, begin, end, None, None, None, *norms, reason=reason)
    before, after = found.counts[at[0]], found.counts[at[1]]
    beyond = float((after[0] + after[-1]) / after.sum())
    return LayerChange(layer, begin, end, divergence(after, before), divergence(before, after), beyond, *norms)


def _bracket(step: IntArray, first: int, last: int) -> tuple[int, int] | None:
    """Return the indices of the recorded steps that enclose `first` to `last`; None where nothing was recorded."""
    if not len(step):
        return None
    begin = max(int(np.searchsorted(step, first, side="right")) - 1, 0)
    end = min(int(np.searchsorted(step, last)), len(step) - 1)
    return begin, end


def _ends(step: IntArray, value: FloatArray, first: int, last: int) -> tuple[float, float] | None:
    at = _bracket(step, first, last)
    return None if at is None or at[0] >= at[1] else (float(value[at[0]]), float(value[at[1]]))


def _why_not(found: Histograms, begin: int, end: int) -> str:
    """Return why two histograms of one layer cannot be compared; empty where they can."""
    if begin >= end:
        return f"has one histogram for both, of step {found.step[end]}"
    edges, counts = found.edges[[begin, end]], found.counts[[begin, end]]
    if not (np.isfinite(edges).all() and np.isfinite(counts).all() and (counts >= 0).all()):
        return "a histogram holds no usable numbers"
    if not counts.sum(axis=1).all():
        return "a histogram is empty"
    if np.abs(edges[0] - edges[1]).max() > SAME_EDGE * (edges[0].max() - edges[0].min()):
        return f"the bins of steps {found.step[begin]} and {found.step[end]} have different edges"
    return ""


def _common_reason(rows: list[LayerChange]) -> str:
    """Return why no layer has a number, in one sentence."""
    reasons = list(dict.fromkeys(row.reason for row in rows))
    if not reasons:
        return "no parameter was recorded"
    return f"{reasons[0]} (all {len(rows)} parameters)" if len(reasons) == 1 else f"{reasons[0]}; {reasons[1]}"
