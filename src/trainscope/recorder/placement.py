"""Tells, once each, what a wrong place in the loop or a wrong optimizer makes of a recording."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import torch
from torch import nn

from trainscope.probe import Measurement, Probe

_LOG = logging.getLogger("trainscope")
_NO_GRADIENT = (
    "step %d: not one parameter has a gradient, none is recorded; "
    "call scope.step after backward() and before optimizer.zero_grad()"
)
_STEPPED = (
    "step %d: the weights changed between the forward and scope.step, "
    "each update is recorded with the step before its own; call scope.step before optimizer.step()"
)
_FOREIGN = (
    "not one of the model's parameters is in the optimizer that the recorder was given, updates and moments "
    "are not recorded; was the optimizer made for another model, or for a copy of this one?"
)


class Placement:
    """Looks at each measured step as a hint of where ``scope.step`` stands."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def check_optimizers(self, model: nn.Module, optimizers: Sequence[torch.optim.Optimizer]) -> None:
        """See that the optimizers are for this model."""
        own = {id(parameter) for parameter in model.parameters()}
        held = (id(p) for optimizer in optimizers for group in optimizer.param_groups for p in group["params"])
        if own and own.isdisjoint(held):
            self._tell(_FOREIGN)

    def check(self, probe: Probe, found: Measurement, step: int) -> None:
        """See that a step just measured has gradients, and weights that its forward saw too."""
        places, forwards = found.has.get("grad"), probe.forwards
        if not found.micro_batches:
            return  # not one forward was seen: nothing to compare with
        if not places:
            self._tell(_NO_GRADIENT, step)
            return
        if forwards.weight is not None and forwards.weight._version != forwards.version:
            self._tell(_STEPPED, step)
        forwards.weight = probe.statistics.watched.tensors[places[0]]

    def _tell(self, text: str, *values: int) -> None:
        if text not in self._told:
            self._told.add(text)
            _LOG.warning(text, *values)
