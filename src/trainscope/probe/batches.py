"""The batches of a training step, as the model gets them: what the recorder notes of each.

The cost is bounded: a sample of each batch, and of a step with many micro-batches the first ones. The samples of
several steps are worked out together when their numbers are wanted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from .batch_statistics import Sample, Statistic, sample, statistics

MOST_TOKENS = 2_048
"""Tokens of a batch that are looked at: of a small GPT 0.1 ms at the step, 0.2 ms when it is read."""
MOST_BATCHES = 4
"""Micro-batches of a step that are looked at."""
HISTORY = 200
"""Micro-batches that say what is usual."""
NAMES = tuple(f"batch/{statistic.name.lower()}" for statistic in Statistic)

Shape = tuple[int, tuple[int, ...] | None, bool]
"""Of one sample: numbers in its batch, shape of its tokens, whether it has other numbers."""
Scalars = dict[str, float | int | bool | None]


class Batches:
    """Collects the batches of the step that is going on; nothing waits for a device."""

    def __init__(self) -> None:
        self._samples: list[Sample] = []

    def see(self, inputs: object) -> None:
        """Look at the arguments of a training forward."""
        if len(self._samples) < MOST_BATCHES:
            found = sample(inputs, MOST_TOKENS)
            if found is not None:
                self._samples.append(found)

    def collect(self) -> tuple[list[Shape], dict[str, Tensor]]:
        """Return the samples of the step's batches as shapes and vectors, and forget them."""
        samples, self._samples = self._samples, []
        shapes: list[Shape] = []
        vectors: dict[str, Tensor] = {}
        for number, one in enumerate(samples):
            shapes.append((one.size, None if one.tokens is None else tuple(one.tokens.shape), one.given is not None))
            if one.tokens is not None:
                vectors[f"batch tokens {number}"] = one.tokens
            if one.given is not None:
                vectors[f"batch numbers {number}"] = one.given
        return shapes, vectors


class BatchColumns:
    """Works out the batches of measured steps, and picks for each step the numbers farthest from usual."""

    def __init__(self) -> None:
        self._before: deque[list[float]] = deque(maxlen=HISTORY)

    def of(self, shapes: Sequence[Sequence[Shape]], vectors: Sequence[Mapping[str, Tensor]]) -> list[Scalars]:
        """Return the numbers of each step by name; none where no batch was seen.

        Parameters
        ----------
        shapes : sequence of sequence of Shape
            Of the samples of each step.
        vectors : sequence of mapping of str to Tensor
            What :meth:`Batches.collect` gave, on the host.
        """
        samples = [
            Sample(
                size,
                None if tokens is None else moved[f"batch tokens {number}"].view(tokens),
                moved[f"batch numbers {number}"] if others else None,
            )
            for step, moved in zip(shapes, vectors, strict=True)
            for number, (size, tokens, others) in enumerate(step)
        ]
        if not samples:
            return [{} for _ in shapes]
        rows = statistics(samples).split_with_sizes([len(step) for step in shapes])
        return [self._farthest(part) if len(part) else {} for part in rows]

    def _farthest(self, rows: Tensor) -> Scalars:
        """Return one step's numbers: of several micro-batches, each from the one farthest from what was usual."""
        values = rows.tolist()
        chosen = values[0]
        if len(values) > 1:
            before = torch.tensor(list(self._before) or values, dtype=torch.float64, device="cpu")
            away = (rows - before.nanmedian(0).values).abs().nan_to_num(-1.0)
            chosen = rows.gather(0, away.argmax(0, keepdim=True))[0].tolist()
        self._before.extend(values)
        return {name: value for name, value in zip(NAMES, chosen, strict=True) if value == value}
