"""One measured step on its way from the device to plain numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from torch import Tensor

from .activations import Sampled
from .batches import Shape


class Stat(IntEnum):
    """Rows of a step's table, a column a parameter: what reduces it to one number, over the ranks that share it too."""

    GRAD_SQUARES = 0
    GRAD_TOTAL = 1
    GRAD_HIGH = 2
    GRAD_NEGATED = 3
    """Largest of the numbers with their sign turned."""
    WEIGHT_SQUARES = 4
    WEIGHT_TOTAL = 5
    WEIGHT_HIGH = 6
    WEIGHT_NEGATED = 7
    BAD = 8
    """NaN and infinite numbers in the gradient."""
    CLIPPED_SQUARES = 9
    UPDATE_SQUARES = 10
    """Of the weight change that the optimizer made after the step *before* this one."""
    M_SQUARES = 11
    V_SQUARES = 12
    RMS_SUM = 13
    RMS_COUNT = 14


EXTREMES = (Stat.GRAD_HIGH, Stat.GRAD_NEGATED, Stat.WEIGHT_HIGH, Stat.WEIGHT_NEGATED)
"""Rows that are maxima; all others are sums."""


@dataclass(slots=True, eq=False)
class Measurement:
    """What one step showed. Vectors stay on the device until many steps are moved at once."""

    layers: bool
    """Whether weights, updates and optimizer state were measured, and not only gradients."""
    vectors: dict[str, Tensor] = field(default_factory=dict)
    """``table`` of :class:`Stat` (flat), and whatever else was sampled."""
    has: dict[str, Sequence[int]] = field(default_factory=dict)
    """``grad``, ``m``, ``v``, ``rms``: places of the parameters that have one."""
    squares: float | None = None
    """Sum of squares of all gradients, where it is at hand: on a CPU, without loss scale or shards."""
    clipped: bool = False
    """Whether clipping was seen."""
    bad_counted: bool = False
    batches: Sequence[Shape] = ()
    """Of the samples of batches that are among the vectors."""
    activations: Sampled | None = None
    attention: tuple[tuple[str, ...], tuple[int, ...]] | None = None
    """Names, and forwards of each."""
    histogram_edges: Tensor | None = None
    shares: dict[str, int] = field(default_factory=dict)
    """Router or addressor to the number of its experts or slots."""
    learning_rates: list[float | None] = field(default_factory=list)
    """One a parameter group; None where the optimizer keeps it as a tensor, which is in ``vectors``."""
    scale: float | None = None
    """Loss scale where it is a plain number; as a tensor it is in ``vectors``."""
    micro_batches: int | None = None
    """Training forwards since the step before; None where they cannot be seen."""
    seconds: float = 0.0
    """Since the step before was measured."""


@dataclass(frozen=True, slots=True, eq=False)
class Peek:
    """A few numbers of a step, ahead of its reading."""

    vectors: dict[str, Tensor]
    grad_norm: float | None
    """Global L2 norm of the gradient."""
    shares: dict[str, float]
    """Router or addressor to its largest share."""
