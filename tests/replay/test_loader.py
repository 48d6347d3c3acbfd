"""Skipping leaves out the named batches, and nothing else changes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch.utils.data import DataLoader, Dataset, DistributedSampler, IterableDataset

from trainscope.replay import SkippingDataLoader

pytestmark = pytest.mark.slow


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


def test_training_goes_on_in_the_middle_of_an_epoch():
    loader = SkippingDataLoader(DataLoader(Numbers(), 4), [26, 31], start=24)
    assert len(loader) == 5
    assert [b[0] for b in seen(loader)] == [16, 20, 28, 32, 36]
    assert loader.position == 30
    assert [b[0] for b in seen(loader)] == [0, 8, 12, 16, 20, 24, 28, 32, 36]


class Endless:
    """A sampler that does not say how long an epoch is."""

    def __iter__(self) -> Iterator[int]:
        return iter(range(40))


@pytest.mark.parametrize(
    "make",
    [
        lambda: DataLoader(Stream(), 4),
        lambda: DataLoader(Numbers(), 4, sampler=Endless()),
        lambda: DataLoader(Numbers(), 4, num_workers=1, sampler=Endless(), persistent_workers=True),
    ],
    ids=["stream", "sampler", "workers"],
)
def test_a_loader_without_a_length_is_wound_forward_over_whole_epochs_too(make):
    loader = SkippingDataLoader(make(), [26, 31], start=24)
    assert [b[0] for b in seen(loader)] == [16, 20, 28, 32, 36]
    assert loader.position == 30
    assert [b[0] for b in seen(loader)] == [0, 8, 12, 16, 20, 24, 28, 32, 36]
    again = SkippingDataLoader(make(), [], start=20)
    assert [b[0] for b in seen(again)] == [*range(0, 40, 4)]


def test_a_generator_that_is_wound_past_its_end_gives_nothing():
    assert seen(SkippingDataLoader(iter([torch.tensor([0])]), [], start=7)) == []


def test_a_start_that_is_no_whole_number_is_refused():
    with pytest.raises(TypeError):
        SkippingDataLoader(DataLoader(Numbers(), 4), [], start=1.5)


def test_a_loader_that_was_put_back_is_not_wound_forward():
    rest = iter([torch.tensor([i]) for i in range(4, 10)])
    assert seen(SkippingDataLoader(rest, [5, 6], start=4, seek=False)) == [[4], [7], [8], [9]]


def test_a_state_goes_on_where_it_was_taken():
    whole = seen(SkippingDataLoader(DataLoader(Numbers(), 4), [1, 6]))
    loader = SkippingDataLoader(DataLoader(Numbers(), 4), [1, 6])
    before = [batch.tolist() for _, batch in zip(range(4), loader, strict=False)]
    state = loader.state_dict()
    fresh = SkippingDataLoader(DataLoader(Numbers(), 4), [1, 6])
    fresh.load_state_dict(state)
    assert before + seen(fresh) == whole
    assert state["position"] == 5


def test_the_state_of_a_loader_with_one_of_its_own_is_used():
    class Stateful:
        at = 0

        def __iter__(self):
            while self.at < 10:
                self.at += 1
                yield torch.tensor([self.at - 1])
            self.at = 0

        def state_dict(self):
            return {"at": self.at}

        def load_state_dict(self, state):
            self.at = state["at"]

    loader = SkippingDataLoader(Stateful(), [2, 8])
    before = [batch.tolist() for _, batch in zip(range(4), loader, strict=False)]
    fresh = SkippingDataLoader(Stateful(), [2, 8])
    fresh.load_state_dict(loader.state_dict())
    assert before == [[0], [1], [3], [4]]
    assert seen(fresh) == [[5], [6], [7], [9]]
    assert fresh.position == 10


def test_each_rank_skips_its_own_part_of_the_same_positions():
    def ranks(skip: list[int]) -> list[list[list[int]]]:
        found = []
        for rank in range(2):
            sampler = DistributedSampler(Numbers(), num_replicas=2, rank=rank, seed=5)
            loader = SkippingDataLoader(DataLoader(Numbers(), 4, sampler=sampler), skip)
            epochs = []
            for epoch in range(2):
                loader.set_epoch(epoch)
                epochs += seen(loader)
            found.append(epochs)
        return found

    whole, skipped = ranks([]), ranks([1, 7])
    for mine, rest in zip(whole, skipped, strict=True):
        assert rest == [batch for place, batch in enumerate(mine) if place not in {1, 7}]
        assert mine[:5] != mine[5:], "set_epoch reaches the sampler"


def test_the_epoch_is_told_to_batch_samplers_data_sets_and_loaders_of_their_own():
    told = []

    class Told(Numbers):
        def set_epoch(self, epoch):
            told.append(epoch)

    SkippingDataLoader(DataLoader(Told(), 4), []).set_epoch(3)
    SkippingDataLoader(Told(), []).set_epoch(4)
    assert told == [3, 4]


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


def test_a_loader_that_accelerate_prepared_can_be_skipped():
    accelerate = pytest.importorskip("accelerate")
    prepared = accelerate.Accelerator(cpu=True).prepare(DataLoader(Numbers(), 4))
    loader = SkippingDataLoader(prepared, [0, 4, 13])
    assert [b[0] for b in seen(loader)] == [4, 8, 12, 20, 24, 28, 32, 36]
    assert [b[0] for b in seen(loader)] == [0, 4, 8, 16, 20, 24, 28, 32, 36]


def test_the_package_loads_no_torch_until_the_loader_is_asked_for():
    code = "import sys, trainscope.replay, trainscope.replay.plan; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_trainer_of_hugging_face_trains_without_the_skipped_batches(tmp_path):
    transformers = pytest.importorskip("transformers")
    seen_by_model = []

    class Data(Dataset):
        def __len__(self):
            return 40

        def __getitem__(self, index):
            return {"x": torch.tensor([float(index)]), "labels": torch.tensor([0.0])}

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)

        def forward(self, x, labels):
            seen_by_model.append(sorted(x.flatten().int().tolist()))
            return {"loss": (self.layer(x) - labels).square().mean()}

    class Trainer(transformers.Trainer):
        skip: tuple[int, ...] = ()

        def get_train_dataloader(self):
            return SkippingDataLoader(super().get_train_dataloader(), self.skip)

    def train(skip: tuple[int, ...]) -> tuple[list[list[int]], int]:
        seen_by_model.clear()
        arguments = transformers.TrainingArguments(
            str(tmp_path), per_device_train_batch_size=4, num_train_epochs=2, report_to=[], use_cpu=True,
            save_strategy="no", logging_strategy="no", disable_tqdm=True, seed=0,
        )  # fmt: skip
        trainer = Trainer(Model(), arguments, train_dataset=Data())
        trainer.skip = skip
        trainer.train()
        return [*seen_by_model], trainer.state.global_step

    whole, steps = train(())
    assert (len(whole), steps) == (20, 20)
    kept, steps = train((2, 13))
    assert kept == [batch for place, batch in enumerate(whole) if place not in {2, 13}]
    assert steps == 18
