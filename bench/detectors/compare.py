"""Our detectors beside the shipped rules, at the same rate of false alarms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from detectors.alarms import DELAYS, delay_at, threshold_for
from detectors.intervals import rate, share
from detectors.measure import ANALYZE, LIVE, delays
from detectors.rules import RULES
from detectors.truth import FAULTS, PLANTED_IN, SIZES

Healthy = dict[str, dict[str, Any]]
Planted = list[tuple[str, str, float, dict[str, Any]]]
OURS = (ANALYZE, LIVE)


@dataclass(frozen=True, slots=True)
class Found:
    """How a rule did on one fault of one size."""

    n: int
    """Runs that count."""
    within: tuple[int, ...]
    """How many of them it had found by each of ``DELAYS``."""
    delay: float
    """Median delay; inf where fewer than half are found."""


def found(values: list[float]) -> Found:
    """Count delays; NaN are runs that alarmed too early and do not count."""
    kept = [v for v in values if not math.isnan(v)]
    within = tuple(sum(v <= d for v in kept) for d in DELAYS)
    return Found(len(kept), within, float(np.median(kept)) if kept else math.nan)


def thresholds(healthy: Healthy, names: Sequence[str], ours: str) -> dict[str, float]:
    """Return the threshold of each rule that gives no more alarms in the healthy runs of these noises than we gave."""
    allowed = sum(int(healthy[n]["ours"][ours]) for n in names)
    return {r.name: threshold_for([p for n in names for p in healthy[n]["peaks"][r.name]], allowed) for r in RULES}


def cells(piece: dict[str, Any], at: dict[str, float]) -> dict[str, Found]:
    """Return how we and each rule did in one piece, the rules at the thresholds given."""
    out = {name: found(delays(piece[name])) for name in OURS}
    for rule in RULES:
        out[rule.name] = found([delay_at(row, at[rule.name]) for row in piece["levels"][rule.name]])
    return out


def false_alarms(healthy: Healthy) -> str:
    """Return a table: false alarms per 10,000 steps of each rule at its own default, a column a kind of noise."""
    shown = ("gauss", "gauss, AR(0.6)", "t3", "t3, AR(0.3)", "laplace", "lognormal", "gauss, 1 % outliers")
    steps = sum(p["steps"] for p in healthy.values())
    rows = [("", "all noises (95 % interval)", *shown), ("---",) * (len(shown) + 2)]
    for name, default in [*((o, None) for o in OURS), *((r.name, r.default) for r in RULES)]:
        counts = {kind: _count(piece, name, default) for kind, piece in healthy.items()}
        whole = rate(sum(counts.values()), steps)
        cell = f"{whole.value:.2f} ({whole.low:.2f} to {whole.high:.2f})"
        rows.append((name, cell, *(f"{rate(counts[k], healthy[k]['steps']).value:.1f}" for k in shown)))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _count(piece: dict[str, Any], name: str, threshold: float | None) -> int:
    if threshold is None:
        return int(piece["ours"][name])
    return sum(p >= threshold for run in piece["peaks"][name] for p in run)


def comparison(healthy: Healthy, planted: Planted) -> str:
    """Return the tables: false alarms, then each fault by size, ours beside the best rule, thresholds for all noises.

    The second kind of table gives each rule a threshold of its own for each noise, which no user could set.
    """
    parts = [false_alarms(healthy)]
    for ours in OURS:
        for noise in PLANTED_IN:
            pieces = [(fault, size, piece) for n, fault, size, piece in planted if n == noise]
            parts.append(
                f"{ours}, {noise}, one threshold for all noises:\n\n" + _beside(healthy, tuple(healthy), pieces, ours)
            )
            parts.append(f"{ours}, {noise}, thresholds for this noise:\n\n" + _beside(healthy, (noise,), pieces, ours))
    return "\n\n".join(parts)


def _beside(healthy: Healthy, names: Sequence[str], pieces: list[tuple[str, float, dict[str, Any]]], ours: str) -> str:
    at = thresholds(healthy, names, ours)
    rows = [("fault", *(f"{s:g} σ" for s in SIZES), "best rule over all sizes"), ("---",) * (len(SIZES) + 2)]
    for fault in FAULTS:
        by_size = {size: cells(piece, at) for f, size, piece in pieces if f == fault}
        best = max((r.name for r in RULES), key=lambda r: _strength(by_size, r))
        row = [f"{_said(by_size[s][ours])} / {_said(by_size[s][best])}" for s in SIZES]
        verdict = "ahead" if _strength(by_size, ours) >= _strength(by_size, best) else "behind"
        rows.append((fault, *row, f"{best} ({at[best]:.3g}): {verdict}"))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _strength(by_size: dict[float, dict[str, Found]], name: str) -> tuple[int, float]:
    """Order rules by runs found within 100 steps over all sizes, then by the sum of their median delays."""
    cells_ = [by_size[s][name] for s in SIZES]
    return sum(c.within[-1] for c in cells_), -sum(min(c.delay, 1000.0) for c in cells_)


def _said(cell: Found) -> str:
    share_ = share(cell.within[-1], cell.n)
    delay = "" if math.isinf(cell.delay) or math.isnan(cell.delay) else f" at {cell.delay:g}"
    return f"{share_.value:.2f}{delay}"
