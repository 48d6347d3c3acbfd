"""Skipping leaves out the named batches, and nothing else changes."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch.utils.data import DataLoader

from trainscope.replay import SkippingDataLoader

from .loaders import Numbers, Stream, seen, shuffled

pytestmark = pytest.mark.slow


def test_other_batches_are_the_same_samples_in_the_same_order():
    whole = [seen(loader) for loader in [shuffled()] for _ in range(3)]
    loader = SkippingDataLoader(shuffled(), [0, 7, 12, 29])
    found = [seen(loader) for _ in range(3)]
    flat = [batch for epoch in whole for batch in epoch]
    assert [batch for epoch in found for batch in epoch] == [b for i, b in enumerate(flat) if i not in {0, 7, 12, 29}]
    assert loader.position == 30


def test_skipped_batches_are_never_loaded():
    data = Numbers()
    seen(SkippingDataLoader(DataLoader(data, 4), [1, 2]))
    assert data.loaded == [*range(4), *range(12, 40)]


def test_with_load_they_are_loaded_and_dropped_so_that_augmentation_stays_the_same():
    class Noisy(Numbers):
        def __getitem__(self, index: int):
            return index + torch.rand(1)

    def batches(loader) -> list[bytes]:
        torch.manual_seed(0)
        return [batch.numpy().tobytes() for batch in loader]

    whole = batches(DataLoader(Noisy(), 4))
    assert batches(SkippingDataLoader(DataLoader(Noisy(), 4), [2], load=True)) == whole[:2] + whole[3:]
    assert batches(SkippingDataLoader(DataLoader(Noisy(), 4), [2])) != whole[:2] + whole[3:]


@pytest.mark.parametrize(
    "make",
    [
        lambda: DataLoader(Stream(), 4),
        lambda: (torch.arange(i, i + 4) for i in range(0, 40, 4)),
        lambda: [torch.arange(i, i + 4) for i in range(0, 40, 4)],
        lambda: DataLoader(Numbers(), batch_sampler=[list(range(i, i + 4)) for i in range(0, 40, 4)]),
        lambda: DataLoader(Numbers(), 4, num_workers=2),
        lambda: DataLoader(Numbers(), 4, num_workers=2, persistent_workers=True),
    ],
    ids=["stream", "generator", "list", "batch sampler", "workers", "persistent workers"],
)
def test_any_loader_can_be_skipped(make):
    loader = SkippingDataLoader(make(), [0, 3, 9])
    assert [batch[0] for batch in seen(loader)] == [4, 8, 16, 20, 24, 28, 32]
    assert loader.position == 10


def test_a_loader_of_single_samples_can_be_skipped():
    assert [int(x) for x in SkippingDataLoader(DataLoader(Numbers(5), batch_size=None), [1, 4])] == [0, 2, 3]


def test_persistent_workers_live_on_and_positions_go_on_from_epoch_to_epoch():
    inner = DataLoader(Numbers(), 4, num_workers=1, persistent_workers=True)
    loader = SkippingDataLoader(inner, [1, 12])
    first, second = seen(loader), seen(loader)
    assert [b[0] for b in first] == [0, 8, 12, 16, 20, 24, 28, 32, 36]
    assert [b[0] for b in second] == [0, 4, 12, 16, 20, 24, 28, 32, 36]


def test_workers_that_persist_from_an_earlier_use_of_the_loader_leave_batches_out_too():
    inner = DataLoader(Numbers(), 4, num_workers=1, persistent_workers=True)
    whole = seen(inner)
    loader = SkippingDataLoader(inner, [1, 3])
    assert [b[0] for b in seen(loader)] == [0, 8, 16, 20, 24, 28, 32, 36]
    assert seen(inner) == whole


def test_the_length_is_that_of_the_epoch_without_the_skipped():
    loader = SkippingDataLoader(shuffled(), [0, 7, 12])
    assert len(loader) == 8
    seen(loader)
    assert len(loader) == 9
    seen(loader)
    assert len(loader) == 10
    with pytest.raises(TypeError):
        len(SkippingDataLoader(iter([]), []))


def test_the_length_is_that_of_what_a_progress_bar_will_count_while_it_counts():
    loader = SkippingDataLoader(DataLoader(Numbers(), 4), [3])
    assert [len(loader) for _ in loader] == [9] * 9


def test_everything_else_is_the_loaders_own():
    inner = shuffled()
    loader = SkippingDataLoader(inner, [0])
    assert (loader.dataset, loader.batch_size, loader.sampler) == (inner.dataset, 4, inner.sampler)
    assert seen(inner), "the loader itself is as it was"
    with pytest.raises(AttributeError):
        loader.nothing  # noqa: B018


def test_positions_before_the_first_are_refused():
    with pytest.raises(ValueError, match="count from 0"):
        SkippingDataLoader([], [-1])
    with pytest.raises(ValueError, match="count from 0"):
        SkippingDataLoader([], [], start=-1)


@pytest.mark.parametrize("skip", ["4521", ["4"], [4.7], [None]])
def test_positions_that_are_no_whole_numbers_are_refused(skip):
    with pytest.raises(TypeError):
        SkippingDataLoader([], skip)


def test_positions_may_be_numbers_of_numpy_and_torch():
    assert SkippingDataLoader([], [np.int64(3), torch.tensor(5)]).skip_batches == {3, 5}


def test_the_package_loads_no_torch_until_the_loader_is_asked_for():
    code = "import sys, trainscope.replay, trainscope.replay.plan; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
