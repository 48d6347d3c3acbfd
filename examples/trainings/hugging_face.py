"""Runs of a tiny GPT-2 under the Hugging Face Trainer, which writes ``trainer_state.json`` itself."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

# Set before transformers is imported: nothing here may ask the network for anything.
os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}

import torch
from torch import Tensor
from torch.utils.data import Dataset, IterableDataset
from transformers import GPT2Config, GPT2LMHeadModel, PrinterCallback, Trainer, TrainingArguments
from transformers.utils import logging

from trainings.data import help_pages

LENGTH = 48
"""Bytes a sequence."""
BATCH = 8


def sequences(page_bytes: bytes) -> Tensor:
    ids = torch.frombuffer(bytearray(page_bytes), dtype=torch.uint8).long()
    return ids[: len(ids) // LENGTH * LENGTH].view(-1, LENGTH)


class HeldOut(Dataset):
    """Every twentieth sequence of the held-out pages."""

    def __init__(self) -> None:
        self.ids = sequences(help_pages()[1].encode())[::20]

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, i: int) -> dict[str, Tensor]:
        return {"input_ids": self.ids[i], "labels": self.ids[i]}


class Stream(IterableDataset):
    """Training sequences in a seeded order; those of step `masked` have no label left to learn."""

    def __init__(self, masked: int | None) -> None:
        self.ids = sequences(help_pages()[0].encode())
        self.masked = masked

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        order = torch.randperm(len(self.ids), generator=torch.Generator().manual_seed(0))
        for i, row in enumerate(order):
            ids = self.ids[row]
            step = i // BATCH + 1
            yield {"input_ids": ids, "labels": torch.full_like(ids, -100) if step == self.masked else ids}


def run(state: Path, *, steps: int, eval_every: int, masked: int | None = None, loss=None) -> None:
    """Train for `steps` and leave the Trainer's own ``trainer_state.json`` at `state`."""
    logging.set_verbosity_error()
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=256, n_positions=LENGTH, n_embd=64, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0
    )
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            max_steps=steps,
            per_device_train_batch_size=BATCH,
            per_device_eval_batch_size=64,
            learning_rate=3e-3,
            lr_scheduler_type="cosine",
            warmup_steps=steps // 10,
            logging_steps=2,
            eval_strategy="steps",
            eval_steps=eval_every,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
            seed=0,
        )
        trainer = Trainer(
            GPT2LMHeadModel(config),
            arguments,
            train_dataset=Stream(masked),
            eval_dataset=HeldOut(),
            compute_loss_func=loss,
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
        trainer.save_state()
        shutil.copyfile(Path(folder) / "trainer_state.json", state)


def healthy_hf(state: Path) -> None:
    run(state, steps=400, eval_every=40)


def mean_over_labels(outputs, labels: Tensor, **_: object) -> Tensor:
    """Average over the tokens that have a label, with no thought for a batch that has none."""
    targets = labels[:, 1:, None]
    kept = targets != -100
    each = outputs.logits[:, :-1].log_softmax(-1).gather(2, targets.clamp(min=0))
    return -(each * kept).sum() / kept.sum()


def zero_loss(state: Path) -> None:
    """Mask all labels of one batch: the loss is 0/0, and the weights turn NaN with it.

    The Trainer's ``logging_nan_inf_filter`` then logs the NaN as a loss of 0.
    """
    run(state, steps=200, eval_every=25, masked=121, loss=mean_over_labels)
