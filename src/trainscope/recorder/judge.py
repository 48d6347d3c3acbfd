"""Which steps are spikes, each judged once, and what a spike sets off."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from trainscope.recorder.live import Live, Noise, Spike
from trainscope.recorder.row import Row

_LOG = logging.getLogger("trainscope")


class Judge:
    """Shows steps to the live detectors, and keeps the news until it is fetched.

    Parameters
    ----------
    live : Live
    on_spike : callable
        Called with the row of each spike.
    """

    def __init__(self, live: Live, on_spike: Callable[[Row], None]) -> None:
        self._live, self._on_spike = live, on_spike
        self._news: list[dict[str, Any]] = []

    def news(self) -> dict[str, Any] | None:
        """Return the oldest spike not yet reported."""
        return self._news.pop(0) if self._news else None

    def loss(self, row: Row, loss: float) -> None:
        """Judge the loss of a step, unless that is done."""
        if not row.loss_judged:
            row.loss_judged = True
            found = self._live.judge_loss(loss)
            if isinstance(found, Noise):
                row.noise_growth = found.growth
                _LOG.warning(
                    "step %d: the noise of the loss is %.1f times as large as ever before", row.step, found.growth
                )
            else:
                self._alarm(row, found)

    def rest(self, row: Row, grad_norm: float | None, shares: Mapping[str, float], addressors: frozenset[str]) -> None:
        """Judge gradient norm and shares of a step, unless that is done."""
        if row.rest_judged:
            return
        row.rest_judged = True
        scaled = row.measurement.scale is not None or "scale" in row.measurement.vectors
        # With a loss scale, overflowing gradients are how the scaler finds its scale; it skips that step.
        self._alarm(row, self._live.judge_rest(None if scaled else grad_norm, shares, addressors))

    def _alarm(self, row: Row, spike: Spike | None) -> None:
        if spike is None or row.spike is not None:
            return
        row.spike = spike
        self._news.append(news_of(row, spike))
        self._on_spike(row)


def news_of(row: Row, spike: Spike) -> dict[str, Any]:
    """Return what is told of a spike."""
    return {
        "step": row.step,
        "loss": row.loss,
        "spike_score": spike.score,
        "z_score": spike.score,
        "detector": spike.detector,
        "batch_index": row.batch_index,
    }
