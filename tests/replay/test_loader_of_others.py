"""Skipping within what accelerate, the Trainer and ranks of a launch make of a loader."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from trainscope.replay import SkippingDataLoader

from .loaders import Numbers, seen

pytestmark = pytest.mark.slow


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


def test_a_loader_that_accelerate_prepared_can_be_skipped():
    accelerate = pytest.importorskip("accelerate")
    prepared = accelerate.Accelerator(cpu=True).prepare(DataLoader(Numbers(), 4))
    loader = SkippingDataLoader(prepared, [0, 4, 13])
    assert [b[0] for b in seen(loader)] == [4, 8, 12, 20, 24, 28, 32, 36]
    assert [b[0] for b in seen(loader)] == [0, 4, 8, 16, 20, 24, 28, 32, 36]


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
