"""How the values of the parts of one step become one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from trainscope.core.run import FloatArray


def norm(values: FloatArray) -> float | None:
    """Return the norm of all; entries below 0 (no gradient) do not count."""
    counted = values[~(values < 0)]
    if not len(counted):
        return None
    return float(np.sqrt(np.square(counted).sum()))


def load_entropy(shares: Mapping[str, FloatArray]) -> float | None:
    """Return the entropy of the shares over its maximum, the mean over routers; None where there is none."""
    found = []
    for share in shares.values():
        used = share[share > 0]
        if len(share) > 1:
            found.append(float(-(used * np.log(used)).sum() / np.log(len(share))))
    return float(np.mean(found)) if found else None


def total(values: Any) -> float | None:
    """Return the sum of what is there, None where nothing is."""
    present = [value for value in values if value is not None]
    return sum(present) if present else None


def together(values: Any) -> float | None:
    """Return the norm of several norms, None where there is none."""
    present = [value for value in values if value is not None]
    return float(np.sqrt(np.square(present).sum())) if present else None


def last(values: Any) -> Any:
    """Return the last value that is there."""
    return next((value for value in reversed(list(values)) if value is not None), None)
