# ruff: noqa: T201
import tempfile

from common import STEPS, finish, torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

torch.manual_seed(0)
model = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=16, n_embd=32, n_layer=2, n_head=2))


class Sequences(torch.utils.data.Dataset):
    def __len__(self):
        return STEPS * 8

    def __getitem__(self, place):
        tokens = (torch.arange(16) * (place + 3)) % 64
        return {"input_ids": tokens, "labels": tokens}


class Report(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        if "loss" in logs:
            print("loss", logs["loss"], logs["grad_norm"], flush=True)


with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        num_train_epochs=1,
        report_to=[],
        use_cpu=True,
        logging_steps=1,
        save_steps=4,
        seed=0,
        disable_tqdm=True,
    )
    Trainer(model, arguments, train_dataset=Sequences(), callbacks=[Report()]).train()
finish(model)
