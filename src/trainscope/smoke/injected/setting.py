"""What does not change from step to step: written at the first step and at the end."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from . import environment
from .draws import Draws
from .models import Models, fingerprint, recurrent_dropout


class Setting:
    """The models, their environment, and what came to light about them.

    Parameters
    ----------
    models : Models
    """

    def __init__(self, models: Models) -> None:
        self._models = models
        self.compiled = False
        """Whether ``torch.compile`` was used."""
        self.checkpointed = False
        """Whether activations were checkpointed: parts of the forward run again in the backward."""
        self.autocast: set[str] = set()
        """Types that autocast computed in."""
        self.dropped: set[float] = set()
        """Rates of the dropouts that training forwards used, as modules or functions, in attention too."""
        self.draws = Draws()
        self.used: set[str] = set()
        """Modules with parameters that are not trained, which ran before the first step."""
        self.temporary: list[Any] = []
        """Handles of hooks that go at the first step."""
        self._left_out: list[tuple[str, weakref.ref[Tensor]]] = []

    def begin(self, parameters: Sequence[Tensor], optimizers: Sequence[Optimizer]) -> dict[str, Any]:
        """Describe models and environment, just before the first step of the optimizer of `parameters`."""
        self._models.discover(parameters)
        self._models.rename()
        trained = {id(p) for optimizer in optimizers for group in optimizer.param_groups for p in group["params"]}
        self._left_out = [
            (name, weakref.ref(p)) for name, p in self._models.named() if p.requires_grad and id(p) not in trained
        ]
        modules = (module for root in self._models.alive() for module in root.modules() if module.training)
        recurrent = {recurrent_dropout(module) for module in modules if isinstance(module, nn.RNNBase)}
        self.dropped |= recurrent - {0.0}
        found = fingerprint(self._models, trained)
        found["environment"] = {**environment.facts(found.pop("device")), "dtype": found.pop("dtype")}
        return found

    def end(self, dropped: set[float]) -> dict[str, Any]:
        """Describe what came to light; `dropped` are the dropout rates of fused attention."""
        return {
            "compiled": self.compiled,
            "modules_used": sorted(self.used),
            "autocast": sorted(self.autocast),
            "checkpointed": self.checkpointed,
            "dropout_used": sorted(self.dropped | dropped),
            "random": self.draws.any,
            "masks": self.draws.masks(),
        }

    def note_precision(self, inputs: Sequence[Tensor]) -> None:
        """Note whether autocast is on where these tensors are."""
        device = inputs[0].device.type if inputs else "cpu"
        if torch.is_autocast_enabled(device):
            self.autocast.add(str(torch.get_autocast_dtype(device)).removeprefix("torch."))

    def left_out_with_gradient(self) -> list[str]:
        """Return the parameters that no optimizer has and that have a gradient now."""
        return [name for name, ref in self._left_out if (p := ref()) is not None and p.grad is not None]

    def forget_temporary(self) -> None:
        """Take away the hooks that were for the time before the first step."""
        for handle in self.temporary:
            handle.remove()
        self.temporary.clear()
