"""Loaders whose batches say which samples they hold."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("torch")

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset


class Numbers(Dataset):
    def __init__(self, count: int = 40) -> None:
        self.count, self.loaded = count, []

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> int:
        self.loaded.append(index)
        return index


class Stream(IterableDataset):
    def __iter__(self) -> Iterator[int]:
        return iter(range(40))


def seen(loader) -> list[list[int]]:
    return [batch.tolist() for batch in loader]


def shuffled(seed: int = 3, **options) -> DataLoader:
    return DataLoader(Numbers(), 4, shuffle=True, generator=torch.Generator().manual_seed(seed), **options)
