"""A loss that a log gives as perplexity only: its logarithm.

Detectors judge losses. A perplexity is the exponential of one, so nothing is lost by taking the logarithm, and a
spike of e nats is no longer one of e times the level.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trainscope.core.run import Note, Series


def with_losses(series: Mapping[str, Series]) -> tuple[dict[str, Series], list[Note]]:
    """Return the series, with a loss for each perplexity that has none beside it, and notes that say so."""
    out, notes = dict(series), []
    for side in ("train", "eval"):
        given = series.get(f"{side}/perplexity")
        name = f"{side}/loss"
        if given is None or name in series or not len(given) or (given.value < 1).any():
            continue
        with np.errstate(all="ignore"):
            out[name] = Series(name, given.step, np.log(given.value), given.time)
        message = f"{name} is the logarithm of {side}/perplexity, for the log has no loss of its own"
        notes.append(Note("derived_loss", message, len(given)))
    return out, notes
