"""Class labels, as classification losses get them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from . import hashing

if TYPE_CHECKING:
    from .forwards import Forward


@dataclass(slots=True, eq=False)
class Labels:
    """One call of a classification loss."""

    classes: int
    count: int
    """Labels that counted."""
    ignored: int
    """Labels equal to ``ignore_index``."""
    mean: float
    """Mean cross entropy of one label, nat."""
    hash: int
    histogram: Tensor
    """(classes,) int64, on the CPU."""
    reduction: str
    smoothing: float


def labels_of(
    logits: Tensor, target: Tensor, loss: Tensor, *, ignore: int, reduction: str, smoothing: float
) -> Labels | None:
    """Describe a call of ``cross_entropy`` or ``nll_loss``; None where the targets are no class indices."""
    if target.is_floating_point() or not logits.dim() or not target.numel():
        return None
    classes = logits.shape[1] if logits.dim() > 1 else logits.shape[0]
    host = target.detach().reshape(-1).cpu()
    valid = host[host != ignore]
    count = valid.numel()
    value = float(loss.detach().float().sum())
    mean = value if reduction == "mean" else value / count if count else math.nan
    histogram = torch.bincount(valid, minlength=classes) if count else torch.zeros(classes, dtype=torch.int64)
    hash_ = hashing.of_tensor(host, limit=None)
    return Labels(classes, count, host.numel() - count, mean, hash_, histogram, reduction, smoothing)


class LabelHistogram:
    """How often each class has occurred in the training forwards so far."""

    def __init__(self) -> None:
        self._counts: Tensor | None = None

    def add(self, forwards: Sequence[Forward]) -> dict[str, Any] | None:
        """Add the labels of a step; return a description of the loss where it is seen first, or has more classes."""
        described = None
        for forward in forwards:
            found = forward.largest()
            if found is None:
                continue
            if self._counts is None or len(self._counts) != len(found.histogram):
                self._counts = torch.zeros_like(found.histogram)
                described = {"classes": found.classes, "reduction": found.reduction, "smoothing": found.smoothing}
            self._counts += found.histogram
        return described

    def entropy(self) -> float | None:
        """Return the entropy of the labels so far in nat, None where there were none."""
        if self._counts is None or not int(self._counts.sum()):
            return None
        share = self._counts.double() / self._counts.sum()
        return float(-torch.special.xlogy(share, share).sum())
