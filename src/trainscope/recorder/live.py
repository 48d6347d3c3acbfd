"""The detectors that run while training goes on, and what they agree a step is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainscope.core.config import TrainScopeConfig
from trainscope.online import AnomalyDetector, NonFinite, make_detector
from trainscope.online.changepoint import ChangePoint
from trainscope.probe import Boundary

DEFAULT = "changepoint"
"""What watches the loss where the chosen detector watches something else."""
REFILL = 200
"""Values that the detectors are shown at a resume, at least: the window of the default one."""


@dataclass(frozen=True, slots=True)
class Spike:
    """A step that a detector calls an anomaly."""

    score: float
    """In the detector's own units; infinite for a loss or gradient that is not finite."""
    detector: str
    """Name of the detector, with the router or addressor it is about."""


@dataclass(frozen=True, slots=True)
class Noise:
    """A step at which the noise of the loss is told to have grown: no step to go back to, and none to stop at."""

    growth: float
    """Times the largest before."""


class Live:
    """Non-finite values always, the chosen detector, one on the loss in any case, and the user's own.

    Parameters
    ----------
    config : TrainScopeConfig
    plugins : sequence of AnomalyDetector
    boundary : Boundary
        Gets the faults of plug-ins.

    Raises
    ------
    ConfigError
        If the chosen detector does not exist or does not take the parameters.
    """

    def __init__(self, config: TrainScopeConfig, plugins: Sequence[AnomalyDetector], boundary: Boundary) -> None:
        self._name, self._params = config.detector_name, config.detector_params
        self._chosen = make_detector(self._name, self._params)
        # A detector of shares does not take the place of the one that watches the loss.
        watches_loss = self._chosen.signal == "loss"
        self._loss_name = self._name if watches_loss else DEFAULT
        self._of_loss = self._chosen if watches_loss else make_detector(DEFAULT, {})
        self._blocks: dict[str, AnomalyDetector] = {}
        self._plugins = plugins
        self._boundary = boundary
        self._loss, self._grads = NonFinite(), NonFinite()

    @property
    def memory(self) -> int:
        """How many values of the past say all that the detectors would know of it."""
        window = self._params.get("window", 0)
        return max(REFILL, int(window), *(2 * d.warmup for d in (self._of_loss, self._chosen, *self._plugins)))

    def refill(self, losses: Sequence[float], shares: Mapping[str, Sequence[float]]) -> None:
        """Show what an earlier session recorded, so that no detector is blind for its warm-up after a resume.

        Nothing is reported, and a non-finite loss stays news: it would be the first of this session.

        Parameters
        ----------
        losses : sequence of float
            Oldest first.
        shares : mapping of str to sequence of float
            Router or addressor to its largest shares, oldest first.
        """
        watching = [self._of_loss, *(plugin for plugin in self._plugins if plugin.signal == "loss")]
        for loss in filter(math.isfinite, losses):
            for detector in watching:
                self._boundary.call("detector", detector.update, loss)
        if self._chosen.signal != "loss":
            for block, values in shares.items():
                for value in values:
                    self._boundary.call("detector", self._block(block).update, value)

    def judge_loss(self, loss: float) -> Spike | Noise | None:
        """Show the raw loss of one step to every detector that watches it."""
        votes = [("non_finite loss", self._loss.update(loss))]
        noise: Noise | None = None
        if math.isfinite(loss):
            score = self._boundary.call("detector", self._of_loss.update, loss)
            if score is not None and isinstance(self._of_loss, ChangePoint) and self._of_loss.noise_grew:
                noise = Noise(score)
            else:
                votes.append((self._loss_name, score))
        for plugin in self._plugins:
            if plugin.signal == "loss":
                name = type(plugin).__name__
                votes.append((name, self._boundary.call(f"detector {name}", plugin.update, loss)))
        return _first(votes) or noise

    def judge_rest(
        self, grad_norm: float | None, shares: Mapping[str, float], addressors: frozenset[str]
    ) -> Spike | None:
        """Show the other numbers of one step to the detectors that watch them.

        Parameters
        ----------
        grad_norm : float or None
            Global norm; None where it is unknown, or where a loss scale makes an overflow part of the plan.
        shares : mapping of str to float
            Router or addressor to its largest share.
        addressors : frozenset of str
            Which of these are addressors.
        """
        votes = [] if grad_norm is None else [("non_finite gradient", self._grads.update(grad_norm))]
        if self._chosen.signal != "loss":
            for block, share in shares.items():
                if (block in addressors) == (self._chosen.signal == "addressor_share"):
                    votes.append((f"{self._name} {block}", self._block(block).update(share)))
        return _first(votes)

    def _block(self, block: str) -> AnomalyDetector:
        if block not in self._blocks:
            self._blocks[block] = make_detector(self._name, self._params)
        return self._blocks[block]


def _first(votes: Sequence[tuple[str, float | None]]) -> Spike | None:
    return next((Spike(float(score), name) for name, score in votes if score is not None), None)
