"""A small character GPT on text that every Python has, with one fault to choose: what bench/replay.py records.

    python bench/replay_training.py --fault garbage --seed 1 --steps 300

An ordinary training script: it knows nothing of trainscope. Batches come from a DataLoader in a fixed order; three
of them can be garbage or one repeated phrase, or the learning rate can be 30 times too high for 5 steps.
"""

from __future__ import annotations

import argparse
import math

import gpt
import torch
from torch.utils.data import DataLoader, Dataset

LENGTH, ROWS = 48, 12
AT, BAD = 180, 3
"""First position of the fault, and how many batches are bad."""
PEAK_RATE, WARM_UP = 3e-3, 40


class Windows(Dataset):
    """Windows of the text by a seed, and what is put in the place of three batches."""

    def __init__(self, seed: int, batches: int, fault: str) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.starts = torch.randint(len(gpt.TOKENS) - LENGTH - 1, (batches * ROWS,), generator=generator)
        self.garbage = torch.randint(gpt.VOCABULARY, (BAD * ROWS, LENGTH + 1), generator=generator)
        self.phrase = torch.randint(gpt.VOCABULARY, (BAD * ROWS, 3), generator=generator)
        self.fault = fault

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.starts)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return tokens and the tokens that follow them."""
        bad = index - AT * ROWS
        window = gpt.TOKENS[self.starts[index] + torch.arange(LENGTH + 1)]
        if 0 <= bad < BAD * ROWS and self.fault == "garbage":
            window = self.garbage[bad]
        if 0 <= bad < BAD * ROWS and self.fault == "repeated":
            window = self.phrase[bad].repeat(LENGTH)[: LENGTH + 1]
        return window[:-1], window[1:]


def rate(step: int, steps: int, fault: str) -> float:
    """Return the factor on the learning rate: warm-up, cosine, and the fault."""
    usual = min(1.0, (step + 1) / WARM_UP) * 0.5 * (1 + math.cos(math.pi * min(1.0, step / steps)))
    return usual * (30.0 if fault == "rate" and AT <= step < AT + 5 else 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fault", choices=("none", "garbage", "repeated", "rate"), default="none")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=300)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    model = gpt.GPT(layers=2, width=48, heads=4, length=LENGTH)
    optimizer = torch.optim.AdamW(model.parameters(), lr=PEAK_RATE, betas=(0.9, 0.99))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate(step, args.steps, args.fault))
    loader = DataLoader(Windows(args.seed, args.steps + 20, args.fault), batch_size=ROWS)
    for step, (tokens, targets) in enumerate(loader):
        if step == args.steps:
            break
        optimizer.zero_grad()
        loss = model(tokens, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
