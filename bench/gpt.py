"""A small GPT on real text that every Python has: the training that the recorder is measured on."""

from __future__ import annotations

import pydoc_data.topics

import torch
from torch import Tensor, nn
from torch.nn import functional

TEXT = "\n".join(text for _, text in sorted(pydoc_data.topics.topics.items()))
CHARACTERS = sorted(set(TEXT))
VOCABULARY = len(CHARACTERS)
_NUMBER = {character: number for number, character in enumerate(CHARACTERS)}
TOKENS = torch.tensor([_NUMBER[character] for character in TEXT])


class Attention(nn.Module):
    """Causal self-attention."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Return features of the shape of `x`."""
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).flatten(2))


class Block(nn.Module):
    """Attention and MLP, each after a norm and around a residual."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.ln1, self.attn = nn.LayerNorm(width), Attention(width, heads)
        self.ln2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        """Return features of the shape of `x`."""
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    """Predicts the next character."""

    def __init__(self, layers: int, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.length = length
        self.tok_emb, self.pos_emb = nn.Embedding(VOCABULARY, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln_f, self.head = nn.LayerNorm(width), nn.Linear(width, VOCABULARY, bias=False)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """Return the loss."""
        x = self.tok_emb(tokens) + self.pos_emb.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return functional.cross_entropy(self.head(self.ln_f(x)).flatten(0, 1), targets.flatten())


def batch(step: int, rows: int, length: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1_000_003 * seed + step)
    starts = torch.randint(len(TOKENS) - length - 1, (rows, 1), generator=generator)
    window = TOKENS[starts + torch.arange(length + 1)]
    return window[:, :-1], window[:, 1:]


SMALL = {"layers": 2, "width": 128, "heads": 4, "length": 64}
"""0.43 million parameters, 29 tensors."""
LARGE = {"layers": 6, "width": 384, "heads": 6, "length": 128}
"""10.8 million parameters, 77 tensors."""
