"""Units that change from line to line: a duration in ms and then in s, a rate of 998.2 and then of 1.02k.

A number keeps the unit in which it was printed as long as all lines agree. Where they do not, all become seconds, or
lose their k, M, G and T.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from trainscope.core.run import FloatArray

_SECONDS = {"ns": 1e-9, "us": 1e-6, "\u00b5s": 1e-6, "\u03bcs": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "secs": 1.0}
_SECONDS |= {"second": 1.0, "seconds": 1.0, "min": 60.0, "mins": 60.0, "h": 3600.0}
_PREFIXES = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2.0**10, "Mi": 2.0**20}
_PREFIXES |= {"Gi": 2.0**30, "Ti": 2.0**40}
_THINGS = r"B|it|its|iters?|steps?|tok|tokens|samples|imgs?|images|examples|FLOPS?"
_UNIT = re.compile(r"( ?)([A-Za-z\u00b5\u03bc]+)?((?:/[A-Za-z]+)*)")
_PREFIXED = re.compile(rf"([KMGT]i(?=B)|[kKMGT])(|{_THINGS})")
_THING = re.compile(_THINGS)


def scales_of(follows: Sequence[Sequence[str]]) -> FloatArray | None:
    """Return what the numbers of lines count in a common unit; None where all lines have the same.

    Parameters
    ----------
    follows : (templates, columns) str
        The text behind each number.

    Returns
    -------
    (templates, columns) float64 array
        The factors.
    """
    units = [[_unit(follow) for follow in row] for row in follows]
    out = np.ones((len(units), len(units[0]) if units else 0))
    for column in range(out.shape[1]):
        bases, factors = zip(*(row[column] for row in units), strict=True)
        if len(set(bases)) == 1:
            out[:, column] = factors if len(set(factors)) > 1 else 1.0
    return out if (out != 1.0).any() else None


def _unit(follow: str) -> tuple[str, float]:
    """Return what a number counts, and how many of it one is."""
    found = _UNIT.match(follow)
    space, word, per = (found[1], found[2] or "", found[3]) if found is not None else ("", "", "")
    if word in _SECONDS:
        return f"s{per}", _SECONDS[word]
    prefixed = _PREFIXED.fullmatch(word)
    if prefixed is not None and (prefixed[2] or not space):
        return prefixed[2] + per, _PREFIXES[prefixed[1]]
    if space and _THING.fullmatch(word) is None:
        return "", 1.0  # the next word of the line
    return word + per, 1.0
