"""Weight histograms in a record: which steps and layers it keeps, and how far any two of them are apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trainscope.core.run import FloatArray, HistogramTable, Run
from trainscope.diagnosis.weight_change import divergence
from trainscope.report.text import figure, label
from trainscope.site.bundle import Record, Weights
from trainscope.site.curves import short

MAX_STEPS = 8
MAX_LAYERS = 16
"""Those that changed most; the others are counted."""
WIDTH, HEIGHT = 160, 30
"""Of a small histogram, in pixels."""


@dataclass(frozen=True, slots=True)
class WeightRow:
    """One layer at two steps: two outlines and the divergence between them."""

    index: int
    """Its place in the record."""
    layer: str
    before: int
    after: int
    before_path: str
    after_path: str
    divergence: str
    bar: float
    """Share of the greatest divergence shown, 0 to 100."""


def weights_of(run: Run, around: tuple[int, int] | None) -> tuple[list[Weights], int]:
    """Return the histograms that a record keeps, most changed first, and how many layers have no room.

    Parameters
    ----------
    run : Run
    around : (int, int), optional
        First sign and last step of the main incident: the recorded steps next to them are kept.
    """
    table = run.layers
    if not isinstance(table, HistogramTable):
        return [], 0
    found = [one for layer in table.layers() if (one := _of_layer(table, layer, around)) is not None]
    found.sort(key=lambda w: -_change(w, *pair_of(w, around)))
    return found[:MAX_LAYERS], max(len(found) - MAX_LAYERS, 0)


def pair_of(weights: Weights, around: tuple[int, int] | None) -> tuple[int, int]:
    """Return the two kept steps to show at first, as indices: before and after the incident, or first and last."""
    last = len(weights.step) - 1
    if around is None:
        return 0, last
    before = max((i for i, s in enumerate(weights.step) if s < around[0]), default=0)
    after = min((i for i, s in enumerate(weights.step) if s >= around[1]), default=last)
    return (before, after) if before < after else (0, last)


def weight_rows(record: Record) -> tuple[WeightRow, ...]:
    """Return what the page shows of the weights before anybody chooses other steps."""
    around = around_of(record)
    pairs = [pair_of(w, around) for w in record.weights]
    most = max((_change(w, *pair) for w, pair in zip(record.weights, pairs, strict=True)), default=0.0)
    rows = []
    for i, (weights, (before, after)) in enumerate(zip(record.weights, pairs, strict=True)):
        top = max(*weights.share[before], *weights.share[after])
        change = weights.divergence[before][after]
        rows.append(
            WeightRow(
                index=i,
                layer=label(weights.layer),
                before=weights.step[before],
                after=weights.step[after],
                before_path=outline(weights.share[before], top),
                after_path=outline(weights.share[after], top),
                divergence=figure(change),
                bar=round(100 * change / most, 1) if most > 0 else 0.0,
            )
        )
    return tuple(rows)


def around_of(record: Record) -> tuple[int, int] | None:
    """Return the first sign and the step at which the loss shows the main incident."""
    if record.main_incident is None:
        return None
    main = record.entry.incidents[record.main_incident]
    return main.onset, max(main.onset, main.loss_step or main.onset)


def outline(shares: Sequence[float], top: float) -> str:
    """Return a histogram as the path of a small picture."""
    wide = WIDTH / len(shares)
    points = [f"M0 {HEIGHT}"]
    for i, share in enumerate(shares):
        y = round(HEIGHT - share / top * (HEIGHT - 2), 1) if top > 0 else HEIGHT
        points.append(f"L{i * wide:g} {y:g}H{(i + 1) * wide:g}")
    return "".join(points) + f"V{HEIGHT}Z"


def _of_layer(table: HistogramTable, layer: str, around: tuple[int, int] | None) -> Weights | None:
    found = table.histograms(layer)
    usable = np.isfinite(found.counts).all(axis=1) & (found.counts >= 0).all(axis=1) & (found.counts.sum(axis=1) > 0)
    usable &= np.isfinite(found.edges).all(axis=1)
    step, counts, edges = found.step[usable], found.counts[usable], found.edges[usable]
    if len(step) < 2 or not np.allclose(edges, edges[0], rtol=1e-9, atol=0.0):
        return None
    kept = _kept(step, around)
    counts = counts[kept]
    return Weights(
        layer=short(layer),
        step=step[kept].tolist(),
        edges=[float(f"{e:.6g}") for e in edges[0]],
        share=[[float(f"{s:.3g}") for s in row / row.sum()] for row in counts],
        divergence=[[_between(counts, i, j) for j in range(len(kept))] for i in range(len(kept))],
    )


def _kept(step: np.ndarray, around: tuple[int, int] | None) -> list[int]:
    if len(step) <= MAX_STEPS:
        return list(range(len(step)))
    chosen = {0, len(step) - 1}
    if around is not None:
        at = [int(np.searchsorted(step, around[0])) - 1, int(np.searchsorted(step, around[1]))]
        chosen |= {min(max(i, 0), len(step) - 1) for i in at}
    even = np.linspace(0, len(step) - 1, 4 * MAX_STEPS).round().astype(int).tolist()
    # The even ones in an order that halves the gaps, until there are enough.
    for i in even[:: len(even) // MAX_STEPS] + even:
        if len(chosen) >= MAX_STEPS:
            break
        chosen.add(i)
    return sorted(chosen)


def _between(counts: FloatArray, i: int, j: int) -> float:
    """Return the divergence of the later histogram j from the earlier i, nats."""
    return 0.0 if i == j else float(f"{divergence(counts[j], counts[i]):.4g}")


def _change(weights: Weights, before: int, after: int) -> float:
    return weights.divergence[before][after]
