"""The exception that ends a training on a spike, where the user asked for that."""

from __future__ import annotations

import warnings


class StopTraining(Exception):  # noqa: N818  # a stable public name
    """Raised from ``scope.step`` with ``stop_on_spike``, on every rank at the same step.

    Attributes
    ----------
    step : int
    spike_score : float
        In the detector's own units; infinite for a loss or gradient that is not finite.
    """

    def __init__(self, step: int, spike_score: float) -> None:
        super().__init__(f"spike at step {step}, score {spike_score:.4g}")
        self.step = step
        self.spike_score = spike_score

    @property
    def z_score(self) -> float:
        """Deprecated name of `spike_score`."""
        warnings.warn("StopTraining.z_score is now spike_score", DeprecationWarning, stacklevel=2)
        return self.spike_score
