"""A character GPT of 68,000 parameters, with the parts that faults need: ReLU, QK-norm, experts."""

from __future__ import annotations

import math
import pydoc_data.topics
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

TEXT = "\n\n".join(text for _, text in sorted(pydoc_data.topics.topics.items()))
CHARACTERS = sorted({c for c in set(TEXT) if TEXT.count(c) >= 20})[:95]
VOCABULARY = len(CHARACTERS) + 1
"""Rare characters share the number 0."""
_NUMBER = {character: number for number, character in enumerate(CHARACTERS, start=1)}
TOKENS = torch.tensor([_NUMBER.get(character, 0) for character in TEXT])
TRAIN, HELD_OUT = TOKENS[: len(TOKENS) * 9 // 10], TOKENS[len(TOKENS) * 9 // 10 :]
WIDTH, LAYERS, HEADS, LENGTH, EXPERTS = 48, 2, 4, 48, 8


@dataclass(frozen=True, slots=True)
class Shape:
    """What the model is made of."""

    relu: bool = False
    qk_norm: bool = False
    experts: bool = False


class Attention(nn.Module):
    """Causal self-attention."""

    def __init__(self, qk_norm: bool) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH // HEADS) for _ in range(2)) if qk_norm else None

    def forward(self, x: Tensor) -> Tensor:
        """Return features of the shape of `x`, (batch, length, width)."""
        q, k, v = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        if self.norms is not None:
            q, k = self.norms[0](q), self.norms[1](k)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))


class Experts(nn.Module):
    """One expert a token, chosen by a router, with the load-balancing loss of the Switch transformer."""

    def __init__(self, experts: int = EXPERTS) -> None:
        super().__init__()
        self.router = nn.Linear(WIDTH, experts, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH)) for _ in range(experts)
        )
        self.balance = torch.zeros(())

    def forward(self, x: Tensor) -> Tensor:
        """Return features of the shape of `x`."""
        tokens = x.flatten(0, 1)
        share = self.router(tokens).softmax(-1)
        weight, chosen = share.max(-1)
        y = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            rows = chosen == number
            if rows.any():
                y[rows] = expert(tokens[rows]) * weight[rows, None]
        load = torch.bincount(chosen, minlength=len(self.experts)) / len(chosen)
        self.balance = len(self.experts) * (load * share.mean(0)).sum()
        return y.view_as(x)


class Block(nn.Module):
    """Attention and MLP, each after a norm and around a residual."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.ln1, self.attn, self.ln2 = nn.LayerNorm(WIDTH), Attention(shape.qk_norm), nn.LayerNorm(WIDTH)
        act = nn.ReLU() if shape.relu else nn.GELU()
        wide = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), act, nn.Linear(4 * WIDTH, WIDTH))
        self.mlp = Experts() if shape.experts else wide

    def forward(self, x: Tensor) -> Tensor:
        """Return features of the shape of `x`."""
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    """Predicts the next character."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(LAYERS))
        self.ln, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits, (batch, length, vocabulary)."""
        h = self.tokens(x) + self.positions.weight[: x.shape[1]]
        for block in self.blocks:
            h = block(h)
        return self.head(self.ln(h))

    def balance(self) -> Tensor | float:
        """Return the load-balancing loss of all mixtures, 0 without any."""
        return sum((b.mlp.balance for b in self.blocks if isinstance(b.mlp, Experts)), 0.0)


def windows(tokens: Tensor, rows: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return `rows` random windows of LENGTH tokens and the tokens that follow each."""
    starts = torch.randint(len(tokens) - LENGTH - 1, (rows, 1), generator=generator)
    window = tokens[starts + torch.arange(LENGTH + 1)]
    return window[:, :-1], window[:, 1:]


def cosine(step: int, steps: int, peak: float, warm_up: int) -> float:
    """Return the learning rate: a linear warm-up to `peak`, then half a cosine down to a tenth of it."""
    if step < warm_up:
        return peak * (step + 1) / warm_up
    return peak * (0.1 + 0.45 * (1.0 + math.cos(math.pi * (step - warm_up) / (steps - warm_up))))
