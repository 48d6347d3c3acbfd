"""From how many samples a loader draws, whoever makes its batches and its epochs."""

from __future__ import annotations

import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    DistributedSampler,
    RandomSampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

from trainscope.smoke.injected.given import Loaders
from trainscope.smoke.injected.loaders import describe

pytestmark = pytest.mark.slow

DATA = TensorDataset(torch.zeros(100, 2))
EVEN = torch.ones(100)


@pytest.mark.parametrize(
    ("options", "samples"),
    [
        ({"batch_size": 8, "shuffle": True}, 100),
        ({"batch_sampler": BatchSampler(RandomSampler(DATA), 8, drop_last=False)}, 100),
        ({"sampler": BatchSampler(RandomSampler(DATA), 8, drop_last=False), "batch_size": None}, 100),
        ({"batch_size": 8, "sampler": RandomSampler(DATA, num_samples=3200, replacement=True)}, 100),
        ({"batch_size": 8, "sampler": RandomSampler(DATA, num_samples=40)}, 100),
        ({"batch_size": 8, "sampler": WeightedRandomSampler(EVEN, 640)}, 100),
        ({"batch_size": 8, "sampler": SubsetRandomSampler(range(30))}, 30),
        ({"batch_size": 8, "sampler": DistributedSampler(DATA, num_replicas=2, rank=0)}, 50),
    ],
    ids=["shuffled", "batches", "batches of a sampler", "replacement", "short epochs", "weighted", "subset", "ranks"],
)
def test_a_loader_draws_from_so_many_samples(options, samples):
    assert describe(DataLoader(DATA, **options))["samples"] == samples


def test_samples_are_counted_when_they_first_come():
    loaders = Loaders()
    number = loaders.opened(DATA, "{}")
    for batch in ([0, 0, 1], [1, 2, 3], 0):
        loaders.asked(number, batch)
    ((*_, ordered, counts),) = loaders.describe()
    assert (ordered, counts) == (False, [7, 4, 2])
