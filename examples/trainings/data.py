"""What the models learn from: Python's own help pages as text, scikit-learn's digits as images.

Both come with the installation, so nothing is downloaded.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor

CONTEXT = 8
"""Characters the text model sees before the one it predicts."""


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """Training examples, held-out examples, and how a batch is drawn."""

    x: Tensor
    y: Tensor
    eval_x: Tensor
    eval_y: Tensor
    classes: int
    sequences: int
    """Places in the data that a batch is drawn from."""
    length: int
    """Neighbouring examples taken at each place: 1 for images, a stretch of text for characters."""

    def batch(self, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        """Draw ``sequences * length`` training examples."""
        starts = rng.integers(len(self.y) - self.length + 1, size=self.sequences)
        rows = torch.from_numpy((starts[:, None] + np.arange(self.length)).ravel())
        return self.x[rows], self.y[rows]


@cache
def help_pages() -> tuple[str, str]:
    """Return the pages that CPython ships for ``help("FORMATTING")`` and its like: train, held out.

    Every tenth page is held out.
    """
    from pydoc_data.topics import topics

    pages = [topics[name] for name in sorted(topics)]
    held_out = "\n\n".join(pages[5::10])
    del pages[5::10]
    return "\n\n".join(pages), held_out


@cache
def text(characters: int | None = None) -> Data:
    """Characters of the help pages: predict the next from the `CONTEXT` before it.

    Parameters
    ----------
    characters : int, optional
        Train on the first so many characters only.
    """
    pages, held_out = help_pages()
    common = [c for c, n in sorted(Counter(pages).items()) if n >= 20]
    number = {c: i + 1 for i, c in enumerate(common)}
    train, rest = (
        torch.tensor([number.get(c, 0) for c in part]).unfold(0, CONTEXT + 1, 1)
        for part in (pages[:characters], held_out)
    )
    some = rest[:: len(rest) // 2000]
    return Data(train[:, :-1], train[:, -1], some[:, :-1], some[:, -1], len(common) + 1, sequences=64, length=8)


def digits(*, noise: float = 0.2) -> Data:
    """Images of handwritten digits, 8 x 8 pixels scaled to 0..1, a quarter held out, in batches of 128.

    Parameters
    ----------
    noise : float
        Standard deviation of the Gaussian noise on every pixel, which keeps the task from being
        solved exactly.
    """
    from sklearn.datasets import load_digits

    rng = np.random.default_rng(0)
    images, labels = load_digits(return_X_y=True)
    pixels = images / 16 + noise * rng.standard_normal(images.shape)
    order = rng.permutation(len(labels))
    x, y = torch.from_numpy(pixels[order]), torch.from_numpy(labels[order].astype(np.int64))
    cut = len(y) * 3 // 4
    return Data(x[:cut], y[:cut], x[cut:], y[cut:], 10, sequences=128, length=1)
