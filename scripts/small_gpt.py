"""A GPT of 30,000 parameters that shows what happens inside: attention, experts, a memory with addressing."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

WIDTH, LAYERS, HEADS, LENGTH, EXPERTS, SLOTS = 32, 2, 2, 32, 8, 16


class Attention(nn.Module):
    """Causal self-attention that keeps its weights for a look at them."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.weights = torch.zeros(0)

    def forward(self, x: Tensor) -> Tensor:
        """Return features of the shape of `x`, (rows, length, width)."""
        q, k, v = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        logits = q @ k.transpose(-1, -2) / math.sqrt(WIDTH // HEADS)
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        self.weights = logits.masked_fill(hidden, -math.inf).softmax(-1)
        return self.out((self.weights @ v).transpose(1, 2).flatten(2))


class Experts(nn.Module):
    """Top-1 mixture with the load-balancing loss of the Switch transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.first = nn.Parameter(0.1 * torch.randn(EXPERTS, WIDTH, WIDTH))
        self.second = nn.Parameter(0.1 * torch.randn(EXPERTS, WIDTH, WIDTH))
        self.largest, self.balance = 0.0, torch.zeros(())

    def forward(self, x: Tensor) -> Tensor:
        """Return features of the shape of `x`."""
        share = self.router(x).softmax(-1)
        weight, chosen = share.max(-1)
        load = torch.bincount(chosen.flatten(), minlength=EXPERTS) / chosen.numel()
        self.largest = float(load.max())
        self.balance = EXPERTS * (load * share.mean((0, 1))).sum()
        every = torch.einsum("blw,ewv->blev", x, self.first).relu()
        every = torch.einsum("blev,evw->blew", every, self.second)
        index = chosen[..., None, None].expand(*chosen.shape, 1, WIDTH)
        return every.gather(2, index).squeeze(2) * weight[..., None]


class Memory(nn.Module):
    """A bank of slots that is read with softmax addressing."""

    def __init__(self) -> None:
        super().__init__()
        self.addressor = nn.Linear(WIDTH, SLOTS, bias=False)
        self.slots = nn.Parameter(0.1 * torch.randn(SLOTS, WIDTH))
        self.largest = 0.0

    def forward(self, x: Tensor) -> Tensor:
        """Return features of the shape of `x`."""
        share = self.addressor(x).softmax(-1)
        self.largest = float(share.detach().mean((0, 1)).max())
        return share @ self.slots


class Block(nn.Module):
    """Attention and what follows it, each after a norm and around a residual."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.ln1, self.attn, self.ln2 = nn.LayerNorm(WIDTH), Attention(), nn.LayerNorm(WIDTH)
        mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
        self.mlp = Experts() if kind == "experts" else mlp
        self.memory = Memory() if kind == "addressor" else None
        self.kurtosis = 0.0

    def forward(self, x: Tensor) -> Tensor:
        """Return features of the shape of `x`."""
        x = x + self.attn(self.ln1(x))
        h = self.ln2(x)
        x = x + self.mlp(h)
        if self.memory is not None:
            x = x + self.memory(h)
        centred = x.detach() - x.detach().mean()
        self.kurtosis = float((centred**4).mean() / (centred**2).mean() ** 2 - 3.0)
        return x


class GPT(nn.Module):
    """Predicts the next character.

    Parameters
    ----------
    kind : str
        ``plain``, ``experts`` in place of the MLP, or ``addressor`` beside it.
    vocabulary : int
        Characters.
    """

    def __init__(self, kind: str, vocabulary: int) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block(kind) for _ in range(LAYERS))
        self.ln, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, vocabulary, bias=False)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits, (rows, length, vocabulary)."""
        h = self.tokens(x) + self.positions.weight
        for block in self.blocks:
            h = block(h)
        return self.head(self.ln(h))


def signals(model: GPT) -> dict[str, float]:
    """Return what the last forward showed, each the value of the layer that shows most."""
    weights = [b.attn.weights.detach() for b in model.blocks]
    late = [w[:, :, LENGTH // 2 :] for w in weights]
    found = {
        "kurtosis": max(b.kurtosis for b in model.blocks),
        "attention maximum": max(float(w.amax(-1).mean()) for w in late),
        "attention entropy": min(float(torch.special.entr(w).sum(-1).mean()) for w in late),
    }
    shares = [getattr(b.mlp, "largest", None) or getattr(b.memory, "largest", None) for b in model.blocks]
    known = [s for s in shares if s is not None]
    return found | ({"largest share": max(known)} if known else {})
