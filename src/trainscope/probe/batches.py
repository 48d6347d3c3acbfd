"""The batches of a training step, as the model gets them: what the recorder notes of each.

The cost is bounded: a sample of each batch, and of a step with many micro-batches the first ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import torch
from torch import Tensor

from .batch_statistics import Statistic, describe

MOST_TOKENS = 2_048
"""Tokens of a batch that are looked at: 0.3 to 0.4 ms of one core."""
MOST_BATCHES = 4
"""Micro-batches of a step that are looked at."""
HISTORY = 200
"""Micro-batches that say what is usual."""
NAMES = tuple(f"batch/{statistic.name.lower()}" for statistic in Statistic)


class Batches:
    """Collects the batches of the step that is going on; nothing waits for a device."""

    def __init__(self) -> None:
        self._vectors: list[Tensor] = []

    def see(self, inputs: object) -> None:
        """Look at the arguments of a training forward."""
        if len(self._vectors) < MOST_BATCHES:
            found = describe(inputs, MOST_TOKENS)
            if found is not None:
                self._vectors.append(found)

    def collect(self) -> Tensor | None:
        """Return the statistics of the step's batches, one after the other, and forget them."""
        vectors, self._vectors = self._vectors, []
        return torch.cat([vector.to(vectors[0].device) for vector in vectors]) if vectors else None


class Farthest:
    """Picks, of the micro-batches of a step, the numbers farthest from what was usual so far."""

    def __init__(self) -> None:
        self._before: deque[list[float]] = deque(maxlen=HISTORY)

    def scalars(self, vectors: Mapping[str, Tensor]) -> dict[str, float | int | bool | None]:
        """Return the numbers of a step by name; none where nothing was seen."""
        if "batches" not in vectors:
            return {}
        rows = vectors["batches"].view(-1, len(NAMES))
        chosen = rows.tolist()[0]
        if len(rows) > 1:
            before = torch.tensor(list(self._before) or rows.tolist(), dtype=torch.float64)
            away = (rows - before.nanmedian(0).values).abs().nan_to_num(-1.0)
            chosen = rows.gather(0, away.argmax(0, keepdim=True))[0].tolist()
        self._before.extend(rows.tolist())
        return {name: value for name, value in zip(NAMES, chosen, strict=True) if value == value}
