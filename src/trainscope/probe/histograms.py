"""Weight histograms whose bins stay where they are, so that two steps can be compared.

The edges of a parameter are chosen once, from its first histogram, and never move. The two outer bins also
count what lies beyond them. A divergence between two steps then says how far the weights moved; with edges
that follow the weights it says nothing (weights times 100 give 0).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .moments import moments
from .shards import Shards
from .tensors import dense, spread, wide_dtype
from .transfer import to_host

SAMPLE = 65_536
"""A larger weight is counted on this many numbers spread over it: every share is good to 0.2 points."""
WIDTH = 4.0
"""Half-width of the bins in standard deviations of the first histogram."""
FLOOR = 0.1
"""Least half-width. Biases start at 0 and reach a few hundredths; a norm scale starts at exactly 1."""


class Histograms:
    """Counts of `bins` bins for each parameter, on edges fixed at its first count."""

    def __init__(self, bins: int) -> None:
        self._bins = bins
        self.edges: Tensor | None = None
        """(n, bins + 1) float64 on the host, None before the first count."""
        self.known: dict[str, Sequence[float]] = {}
        """Edges that parameters have had before, by name; used again, unless the number of bins is another."""

    def choose(self, names: Sequence[str], weights: Sequence[Tensor], numel: Sequence[int], shards: Shards) -> None:
        """Fix the edges. Once a run; this waits for the device."""
        found = moments(weights)
        table = torch.stack([found.total, found.squares])
        shards.add(table)
        total, squares = to_host([{"table": table.view(-1)}])[0]["table"].view(2, -1)
        count = torch.tensor(numel, dtype=torch.float64, device="cpu").clamp(min=1)
        mean = total / count
        deviation = (squares / count - mean**2).clamp(min=0.0).sqrt()
        half = (WIDTH * deviation).clamp(min=FLOOR)
        steps = torch.linspace(-1.0, 1.0, self._bins + 1, dtype=torch.float64, device="cpu")
        self.edges = mean.unsqueeze(1) + half.unsqueeze(1) * steps
        for place, name in enumerate(names):
            if len(self.known.get(name, ())) == self._bins + 1:
                self.edges[place] = torch.tensor(self.known[name], dtype=torch.float64, device="cpu")

    def forget_order(self, names: Sequence[str]) -> None:
        """Choose anew at the next count, with the same edges for the parameters called `names`."""
        if self.edges is not None:
            self.known.update(zip(names, self.edges.tolist(), strict=True))
            self.edges = None

    def count(self, weights: Sequence[Tensor], shards: Shards) -> Tensor:
        """Return (n * bins,) counts on the device of the weights; :meth:`choose` comes first.

        Raises
        ------
        ValueError
            If the edges are not chosen yet.
        """
        if self.edges is None:
            raise ValueError("the edges are not chosen yet")
        rows = []
        bounds = self.edges[:, [0, -1]].tolist()
        for weight, (low, high) in zip(weights, bounds, strict=True):
            part = dense(weight)
            sample = spread(part, SAMPLE)
            if not sample.numel() or not low < high:
                rows.append(torch.zeros(self._bins, dtype=torch.float32, device=part.device))
                continue
            counts = torch.histc(sample.float().clamp(low, high), self._bins, low, high)
            rows.append(counts * (part.numel() / sample.numel()))
        device = rows[0].device
        table = torch.stack([row.to(device, non_blocking=True) for row in rows], 1).to(wide_dtype(device))
        shards.add(table)
        return table.T.reshape(-1)
