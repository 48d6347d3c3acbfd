"""Our detectors beside the shipped rules, at the same rate of false alarms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from alarms import DELAYS, WARM_UP, delay_at, threshold_for
from intervals import rate, share
from measure import ANALYZE, LIVE, delays
from rules import RULES
from scipy.stats import fisher_exact
from truth import FAULTS, PLANTED_IN, SIZES, STEPS

Healthy = dict[str, dict[str, Any]]
Planted = list[tuple[str, str, float, dict[str, Any]]]
Calibration = dict[str, list[dict[str, list[float]]]]
OURS = (ANALYZE, LIVE)
BAR = 0.1
"""False alarms in 10,000 steps of one noise that a detector may have."""


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


def thresholds_at_bar(runs: list[dict[str, list[float]]]) -> tuple[dict[str, float], dict[str, float]]:
    """Return for each rule the threshold that has ``BAR`` on every other healthy run, and its rate on the others."""
    steps = len(runs) // 2 * (STEPS - WARM_UP)
    at, achieved = {}, {}
    for rule in RULES:
        at[rule.name] = threshold_for([run[rule.name] for run in runs[::2]], int(BAR * steps / 10_000))
        count = sum(p >= at[rule.name] for run in runs[1::2] for p in run[rule.name])
        achieved[rule.name] = rate(count, steps).value
    return at, achieved


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
    return _markdown(rows)


def _count(piece: dict[str, Any], name: str, threshold: float | None) -> int:
    if threshold is None:
        return int(piece["ours"][name])
    return sum(p >= threshold for run in piece["peaks"][name] for p in run)


def comparison(healthy: Healthy, planted: Planted, calibration: Calibration) -> str:
    """Return the tables: false alarms, each fault by size beside the best rule, how long it took, and for how little.

    Rules get one threshold for all noises, as ours have; the last word of a row is about thresholds that have 0.1 false
    alarms per 10,000 steps of this one noise, which no user could know, and the rate that they then have on other runs.
    """
    parts = ["### False alarms at the shipped settings", false_alarms(healthy)]
    for ours in OURS:
        for noise in PLANTED_IN:
            pieces = [(fault, size, piece) for n, fault, size, piece in planted if n == noise]
            parts += [f"### {ours}: faults in {noise} noise", _beside(healthy, calibration[noise], pieces, ours)]
    return "\n\n".join([*parts, "### Delay and first step", _quantiles(planted)])


def _beside(
    healthy: Healthy,
    calibration: list[dict[str, list[float]]],
    pieces: list[tuple[str, float, dict[str, Any]]],
    ours: str,
) -> str:
    shared = thresholds(healthy, tuple(healthy), ours)
    own, achieved = thresholds_at_bar(calibration)
    head = (
        "fault",
        *(f"{s:g} σ" for s in SIZES),
        "found by us",
        "by the best rule",
        "",
        f"threshold with {BAR:g} in this noise",
    )
    rows = [head, ("---",) * len(head)]
    for fault in FAULTS:
        by_size = {size: cells(piece, shared) for f, size, piece in pieces if f == fault}
        best = max((r.name for r in RULES), key=lambda r: _strength(by_size, r))
        row = [f"{_said(by_size[s][ours])} / {_said(by_size[s][best])}" for s in SIZES]
        said = f"{_total(by_size, best)}, {best} ({shared[best]:.3g})"
        fitted = {size: cells(piece, own) for f, size, piece in pieces if f == fault}
        other = max((r.name for r in RULES), key=lambda r: _strength(fitted, r))
        last = f"{_verdict(fitted, ours, other)}: {_total(fitted, other)}, {other} ({achieved[other]:.2f})"
        rows.append((fault, *row, _total(by_size, ours), said, _verdict(by_size, ours, best), last))
    return _markdown(rows)


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _hits(by_size: dict[float, dict[str, Found]], name: str) -> tuple[int, int]:
    return sum(c[name].within[-1] for c in by_size.values()), sum(c[name].n for c in by_size.values())


def _total(by_size: dict[float, dict[str, Found]], name: str) -> str:
    return "{}/{}".format(*_hits(by_size, name))


def _verdict(by_size: dict[float, dict[str, Found]], ours: str, other: str) -> str:
    """Tell who found more within 100 steps over all sizes; "even" where that may be chance (Fisher's test, 5 %)."""
    (a, n), (b, m) = _hits(by_size, ours), _hits(by_size, other)
    if fisher_exact([[a, n - a], [b, m - b]]).pvalue > 0.05:
        return "even"
    return "ahead" if a / n > b / m else "behind"


def _quantiles(planted: Planted) -> str:
    """Return for each fault of 8 and 16 sigma our delays and how far off the first step is that we name."""
    rows = [
        ("fault", "watched: delay 10 / 50 / 90 %", "live: delay 10 / 50 / 90 %", "first step off by 10 / 50 / 90 %")
    ]
    rows.append(("---",) * 4)
    for fault in FAULTS:
        pieces = [p for _, f, size, p in planted if f == fault and size >= 8.0]
        cells_ = [_three([v for p in pieces for v in delays(p[name])]) for name in OURS]
        errors = [e for p in pieces for e in p["onset_error"] if e is not None]
        rows.append((fault, *cells_, _three([float(e) for e in errors])))
    return _markdown(rows)


def _three(values: list[float]) -> str:
    if not values:
        return "never"
    at = [sorted(values)[min(len(values) - 1, int(q * len(values)))] for q in (0.1, 0.5, 0.9)]
    return " / ".join("never" if math.isinf(v) else f"{v:g}" for v in at)


def _strength(by_size: dict[float, dict[str, Found]], name: str) -> tuple[int, float]:
    """Order rules by runs found within 100 steps over all sizes, then by the sum of their median delays."""
    cells_ = [by_size[s][name] for s in SIZES]
    return sum(c.within[-1] for c in cells_), -sum(min(c.delay, 1000.0) for c in cells_)


def _said(cell: Found) -> str:
    share_ = share(cell.within[-1], cell.n)
    delay = "" if math.isinf(cell.delay) or math.isnan(cell.delay) else f" at {cell.delay:g}"
    return f"{share_.value:.2f}{delay}"
