"""A mini GPT on real text that goes wrong twice: one bad batch, then a learning rate that drifts up.

    python examples/gpt2_spike_demo.py [--run-dir trainscope_runs] [--steps 200]

Everything needed is in torch and the Python library (the text is Python's own documentation). At step 120 a
batch comes with its targets in another vocabulary; from step 150 on the learning rate is multiplied by 1.2 at
every step, as a scheduler with a wrong sign would do. The recorder says when it noticed, and leaves what is
needed to find out why.
"""

from __future__ import annotations

import argparse
import pydoc_data.topics
import time

import torch
from torch import nn
from torch.nn import functional

from trainscope import TrainScope, TrainScopeConfig

DRIFT_FROM, DRIFT_UNTIL, DRIFT = 150, 200, 1.2
BAD_STEP = 120
LENGTH, ROWS, WIDTH, HEADS = 48, 8, 64, 4

TEXT = "\n".join(text for _, text in sorted(pydoc_data.topics.topics.items()))
CHARACTERS = sorted(set(TEXT))
TOKENS = torch.tensor([CHARACTERS.index(character) for character in TEXT[:200_000]])


class Block(nn.Module):
    """Attention and MLP, each after a norm and around a residual."""

    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        """Return features of the shape of `x`."""
        q, k, v = (p.unflatten(-1, (HEADS, -1)).transpose(1, 2) for p in self.qkv(self.ln1(x)).chunk(3, dim=-1))
        x = x + self.proj(functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.mlp(self.ln2(x))


class MiniGPT(nn.Module):
    """Predicts the next character."""

    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(len(CHARACTERS), WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(Block(), Block())
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, len(CHARACTERS), bias=False)

    def forward(self, x):
        """Return logits."""
        return self.head(self.norm(self.blocks(self.tokens(x) + self.positions.weight)))


def batch(step):
    starts = torch.randint(len(TOKENS) - LENGTH - 1, (ROWS, 1), generator=torch.Generator().manual_seed(step))
    window = TOKENS[starts + torch.arange(LENGTH + 1)]
    return window[:, :-1], window[:, 1:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run-dir", default="trainscope_runs")
    parser.add_argument("--run-name", default="gpt2_spike_demo")
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    torch.set_num_threads(1)  # the model is too small to share out
    torch.manual_seed(0)
    model = MiniGPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    config = TrainScopeConfig(run_dir=options.run_dir, run_name=options.run_name, checkpoint_on_spike=True)
    begun = time.perf_counter()
    with TrainScope(model, optimizer, config) as scope:
        path = scope.session.path
        for step in range(options.steps):
            if DRIFT_FROM <= step < DRIFT_UNTIL:
                optimizer.param_groups[0]["lr"] *= DRIFT
            tokens, targets = batch(step)
            if step == BAD_STEP:
                targets = (targets + 7) % len(CHARACTERS)
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
            loss.backward()
            spike = scope.step(loss.item(), batch_index=step)
            optimizer.step()
            if step % 20 == 0 or spike is not None:
                told = f"   <- spike at step {spike['step']}, score {spike['spike_score']:.1f}" if spike else ""
                print(f"step {step:4d}  loss {loss.item():.3f}{told}")
    print(f"{options.steps} steps in {time.perf_counter() - begun:.0f} s, recorded in {path}")
    print(f"next: trainscope analyze {path}")


if __name__ == "__main__":
    main()
