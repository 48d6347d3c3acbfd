"""The small curve of a run in the list: letters for the browser, lines for the page."""

from __future__ import annotations

import numpy as np

from trainscope.core.run import FloatArray
from trainscope.site.bundle import Curve

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
SPARK = 40
"""Letters of a small curve: each a share of the steps, its height one of 64; ``!`` NaN or infinity, ``.`` nothing."""


def sparkline(curve: Curve) -> str:
    """Return a curve in letters, on a scale from the least value to the 99th percentile."""
    if not curve.step:
        return ""
    first, last = curve.step[0], curve.step[-1]
    at = np.minimum((np.array(curve.step) - first) / max(last - first, 1) * SPARK, SPARK - 1).astype(int)
    columns = [curve.middle, curve.low or curve.middle, curve.high or curve.middle]
    table = np.array([[np.nan if v is None else v for v in column] for column in columns], dtype=np.float64)
    finite = table[np.isfinite(table)]
    if not len(finite):
        return "!" * SPARK
    low, high, middle = float(finite.min()), float(np.percentile(finite, 99)), float(np.median(finite))
    if len(curve.step) < SPARK:
        return "".join("!" if v is None else _letter(np.array([v]), low, high, middle) for v in curve.middle)
    broken = {int(min((s - first) / max(last - first, 1) * SPARK, SPARK - 1)) for s in curve.broken}
    letters = (_letter(table[:, at == i], low, high, middle) for i in range(SPARK))
    return "".join("!" if i in broken else letter for i, letter in enumerate(letters))


def _letter(values: FloatArray, low: float, high: float, middle: float) -> str:
    """Return the letter of a share of the steps: of the value furthest from the median, so that spikes stay."""
    some = values[np.isfinite(values)]
    if not len(some):
        return "."
    value = float(some[np.argmax(np.abs(some - middle))])
    share = (value - low) / (high - low) if high > low else 0.0
    return LETTERS[round(min(max(share, 0.0), 1.0) * 63)]


def spark_paths(letters: str) -> tuple[str, str]:
    """Return the line of a small curve, and the ticks where it is not finite, in a picture of 112 by 26."""
    line, bad, pen = [], [], "M"
    for i, letter in enumerate(letters):
        x = f"{i * 110 / max(len(letters) - 1, 1) + 1:.1f}".removesuffix(".0")
        if letter == "!":
            bad.append(f"M{x} 21v5")
        if letter in "!.":
            pen = "M"
            continue
        line.append(f"{pen}{x} {24.5 - LETTERS.index(letter) / 63 * 23:.1f}")
        pen = "L"
    return "".join(line), "".join(bad)
