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

from trainscope.smoke.coverage import shared
from trainscope.smoke.injected.given import Loaders
from trainscope.smoke.injected.loaders import describe
from trainscope.smoke.records import Record

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


def ranks(*indices: list[int]) -> list[Record]:
    """Return the records of ranks whose training loader asked for these samples."""
    found = []
    for one in indices:
        loaders = Loaders()
        number = loaders.opened(DATA, "{}")
        loaders.asked(number, one)
        loaders.given(number, [])
        found.append(Record(end=loaders.end()))
    return found


def test_what_ranks_have_in_common_is_told_from_their_first_epochs():
    even, odd = list(range(0, 200, 2)), list(range(1, 201, 2))
    assert shared(ranks(even, odd)) == 0.0
    assert shared(ranks(even + odd, odd + even)) == 1.0  # both through with everything
    assert shared(ranks(even + even, odd + odd)) == 0.0
    assert shared(ranks(even, [*odd[:75], *even[:25]])) == 0.25
    assert shared(ranks(even, odd, even)) == 1.0
    assert shared(ranks(even)) is None
    assert shared(ranks(even[:20], odd)) is None


def test_samples_are_counted_when_they_first_come():
    loaders = Loaders()
    number = loaders.opened(DATA, "{}")
    for batch in ([0, 0, 1], [1, 2, 3], 0):
        loaders.asked(number, batch)
    ((*_, ordered, counts),) = loaders.describe()
    assert (ordered, counts) == (False, [7, 4, 2])
