"""Which column is the wall clock: Unix time, a date, or seconds since the start."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trainscope.core.run import FloatArray
from trainscope.readers.table import Table
from trainscope.readers.vocabulary import ELAPSED_NAMES, STAMP_NAMES, plain_name

_OLDEST, _NEWEST = 3e8, 2e10
"""Unix seconds from 1979 to 2603; nothing that trains logs a clock outside."""


def time_of(table: Table, columns: Sequence[str]) -> tuple[FloatArray | None, str | None]:
    """Return (n,) seconds of every row (NaN where unknown) and the column they come from.

    Unix time where the log has it, else seconds since the start.
    """
    by_name = [(plain_name(name), name) for name in columns]
    for plain, name in by_name:
        if plain in STAMP_NAMES or plain == "_timestamp":
            stamp = _unix(table.columns[name].value)
            if stamp is not None:
                return stamp, name
    for plain, name in by_name:
        if plain in ELAPSED_NAMES:
            value = table.columns[name].value
            given = value[np.isfinite(value)]
            # A column called "time" may also be the seconds of each step: those do not keep rising.
            if len(given) > 2 and (np.diff(given) >= 0).mean() > 0.95 and given[-1] > given[0]:
                return value, name
    return None, None


def _unix(value: FloatArray) -> FloatArray | None:
    given = value[np.isfinite(value)]
    if not len(given):
        return None
    for scale in (1.0, 1e3, 1e6, 1e9):
        if (given >= _OLDEST * scale).all() and (given <= _NEWEST * scale).all():
            return value / scale
    return None
