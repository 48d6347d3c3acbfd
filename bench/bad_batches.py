"""How often bad_batch speaks on healthy data, and finds garbage and repetition planted in it.

    python bench/bad_batches.py [--seeds 20]

No training: the batches of real text that every Python has (its documentation and the source of its library, in random
windows and in reading order, as characters and as words), of random images and of padded sequences are described as the
recorder describes them, 300 a run. Planted are one batch and three batches in a row, in the middle.
"""

from __future__ import annotations

import argparse
import re
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path

import gpt
import numpy as np
import torch
from torch import Tensor

from trainscope.core.run import Run, Series
from trainscope.detectors import bad_batch
from trainscope.probe.batch_statistics import Statistic, describe

STEPS, ROWS, LENGTH, AT = 300, 12, 48, 150
Batches = Iterator[Tensor]


def source() -> str:
    folder = Path(sysconfig.get_path("stdlib"))
    return "\n".join(p.read_text(encoding="utf-8", errors="replace") for p in sorted(folder.glob("*.py")))


def tokens_of(text: str, *, words: bool) -> Tensor:
    pieces = re.findall(r"\w+|\s+|[^\w\s]", text) if words else list(text)
    number = {piece: n for n, piece in enumerate(dict.fromkeys(pieces))}
    return torch.tensor([number[piece] for piece in pieces])


def windows(tokens: Tensor, generator: torch.Generator) -> Batches:
    for _ in range(STEPS):
        starts = torch.randint(len(tokens) - LENGTH, (ROWS, 1), generator=generator)
        yield tokens[starts + torch.arange(LENGTH)]


def reading(tokens: Tensor, generator: torch.Generator) -> Batches:
    """Rows that go on where they ended, each from its own place."""
    starts = torch.randint(len(tokens) - (STEPS + 1) * LENGTH, (ROWS, 1), generator=generator)
    for step in range(STEPS):
        yield tokens[starts + step * LENGTH + torch.arange(LENGTH)]


def images(_: Tensor, generator: torch.Generator) -> Batches:
    for _ in range(STEPS):
        yield torch.rand(ROWS, 3, 32, 32, generator=generator) * torch.rand(ROWS, 1, 1, 1, generator=generator)


def padded(tokens: Tensor, generator: torch.Generator) -> Batches:
    for batch in windows(tokens, generator):
        lengths = torch.randint(8, LENGTH + 1, (ROWS, 1), generator=generator)
        yield torch.where(torch.arange(LENGTH) < lengths, batch, 0)


def spoil(batch: Tensor, how: str, tokens: Tensor, generator: torch.Generator) -> Tensor:
    if batch.is_floating_point():
        return batch * 255 if how == "garbage" else torch.zeros_like(batch)
    if how == "garbage":
        return torch.randint(int(tokens.max()) + 1, batch.shape, generator=generator)
    return tokens[torch.randint(len(tokens), (len(batch), 3), generator=generator)].repeat(1, LENGTH)[:, :LENGTH]


def run_of(make: Callable[[Tensor, torch.Generator], Batches], tokens: Tensor, seed: int, how: str, bad: int) -> Run:
    generator, other = torch.Generator().manual_seed(seed), torch.Generator().manual_seed(seed + 1)
    rows = []
    for step, batch in enumerate(make(tokens, generator)):
        spoiled = AT <= step < AT + bad
        found = describe([spoil(batch, how, tokens, other) if spoiled else batch])
        rows.append(found.tolist())
    values = np.array(rows)
    names = [f"batch/{statistic.name.lower()}" for statistic in Statistic]
    step = np.arange(STEPS)
    series = {n: Series(n, step, values[:, k]) for k, n in enumerate(names) if np.isfinite(values[:, k]).any()}
    return Run("bench", "bench", "recorded", series)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    args = parser.parse_args()
    torch.set_num_threads(1)
    code = source()
    kinds = {
        "documentation, characters, random windows": (windows, gpt.TOKENS),
        "documentation, characters, in reading order": (reading, gpt.TOKENS),
        "documentation, words, random windows": (windows, tokens_of(gpt.TEXT, words=True)),
        "source code, characters, random windows": (windows, tokens_of(code, words=False)),
        "source code, characters, in reading order": (reading, tokens_of(code, words=False)),
        "source code, words, random windows": (windows, tokens_of(code, words=True)),
        "documentation, padded to length": (padded, gpt.TOKENS),
        "images": (images, gpt.TOKENS),
    }
    print("| data | healthy runs flagged | garbage, 1 | garbage, 3 | repeated or empty, 1 | repeated or empty, 3 |")
    print("| --- | --- | --- | --- | --- | --- |")
    total = 0
    for name, (make, tokens) in kinds.items():
        cells = []
        for how, bad in (("", 0), ("garbage", 1), ("garbage", 3), ("repeated", 1), ("repeated", 3)):
            hits = 0
            for seed in range(args.seeds):
                found = bad_batch.detect(run_of(make, tokens, seed, how, bad), bad_batch.Params())
                steps = [f.evidence["steps"] for f in found]
                expected = f"{AT}" if bad == 1 else f"{AT}-{AT + bad - 1}"
                hits += bool(steps) if not bad else expected in steps
            total += hits if not bad else 0
            cells.append(f"{hits}/{args.seeds}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print(f"healthy runs flagged: {total} of {args.seeds * len(kinds)}")


if __name__ == "__main__":
    main()
