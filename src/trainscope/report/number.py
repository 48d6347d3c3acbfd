"""Numbers as JSON has them."""

from __future__ import annotations

import math

import numpy as np

from trainscope.report.part import Number


def number(value: float) -> Number:
    """Return a JSON number, or the word for a value that JSON has no number for."""
    if isinstance(value, (int, np.integer)):
        return int(value)
    plain = float(value)
    if math.isnan(plain):
        return "nan"
    if math.isinf(plain):
        return "inf" if plain > 0 else "-inf"
    return plain
