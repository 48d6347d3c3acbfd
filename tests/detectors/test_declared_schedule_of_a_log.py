"""declared_schedule on a plain log: the settings of a Hugging Face trainer beside it say what was planned."""

from __future__ import annotations

import numpy as np
import pytest

from trainscope.core.finding import Severity
from trainscope.core.run import Note, Run, Series
from trainscope.core.settings import Settings
from trainscope.detectors import configure, judge
from trainscope.detectors.base import Skipped
from trainscope.detectors.declared_schedule import RATE, Params, detect
from trainscope.detectors.engine.plan import curve
from trainscope.readers import read_runs

ID = "declared_schedule"


def hf(shape: str = "linear", steps: int = 200, **settings: object) -> dict[str, object]:
    return {"lr_scheduler_type": shape, "learning_rate": 1e-3, "max_steps": steps} | settings


def logged(rate: np.ndarray, config: dict[str, object], **other: object) -> Run:
    """A log whose points are two steps apart, as a trainer writes it."""
    step = 2 * np.arange(1, len(rate) + 1)
    return Run("made", "made.json", "hf_trainer", {RATE: Series(RATE, step, rate)}, config=config, **other)


def rates(shape: str, warm: float, total: float, n: int = 100, shift: float = 0.0) -> np.ndarray:
    return curve(2.0 * np.arange(1, n + 1) + shift, warm, total, 1e-3, shape)


@pytest.mark.parametrize("shift", [-1.0, 0.0, 1.0])
@pytest.mark.parametrize(
    ("settings", "shape", "warm"),
    [
        (hf("linear"), "linear", 0),
        (hf("cosine", warmup_steps=20), "cosine", 20),
        (hf("linear", warmup_ratio=0.1), "linear", 20),
        (hf("linear", warmup_steps=0.1), "linear", 20),
        (hf("constant_with_warmup", warmup_steps=30), "constant", 30),
        (hf("constant", max_steps=-1, warmup_steps=30), "constant", 0),
    ],
)
def test_a_log_that_follows_the_settings_beside_it_is_right(settings, shape, warm, shift):
    assert detect(logged(rates(shape, warm, 200.0, shift=shift), settings), Params()) == []


@pytest.mark.parametrize(
    ("rate", "settings", "reason"),
    [
        (
            rates("linear", 40, 800),
            hf(warmup_steps=10, gradient_accumulation_steps=4),
            "4 times as slowly, the number of micro-batches of a step",
        ),
        (
            rates("cosine", 5, 100, n=50),
            hf("cosine", warmup_steps=10, world_size=2),
            "2 times as fast, the number of pro",
        ),
        (np.full(100, 1e-3), hf("cosine"), "it stays at its peak: the scheduler never steps"),
        (rates("cosine", 0, 200), hf("cosine", warmup_steps=60), "there is no warm-up"),
        (rates("linear", 20, 34), hf(warmup_steps=20), "it is at its end from step 34 on"),
    ],
)
def test_a_log_off_the_settings_beside_it_is_a_warning_with_the_usual_mistake(rate, settings, reason):
    (finding,) = detect(logged(rate, settings), Params())
    assert finding.severity is Severity.WARNING
    assert reason in finding.message
    assert "the settings beside the log plan" in finding.message


def test_a_log_off_by_nobodys_mistake_is_told_without_a_reason():
    (finding,) = detect(logged(rates("linear", 0, 311), hf("cosine")), Params())
    assert finding.evidence["reason"] == "settings"


def test_what_the_settings_do_not_say_whole_is_not_judged():
    rate = rates("linear", 0, 200)
    for settings in (
        {},
        hf("polynomial"),
        hf("cosine_with_min_lr", **{"lr_scheduler_kwargs.min_lr": 1e-5}),
        hf("linear", **{"lr_scheduler_kwargs.num_cycles": 2}),
        hf("linear", max_steps=-1),
        {"lr_scheduler_type": "linear", "max_steps": 200},
    ):
        assert isinstance(detect(logged(rate, settings), Params()), Skipped), settings


def test_only_what_follows_the_last_resume_is_judged():
    rate = np.concatenate((rates("linear", 0, 100, n=40), rates("linear", 0, 200)[40:]))
    assert len(detect(logged(rate, hf()), Params())) == 1
    again = Note("rewind", "steps 82-90 were written twice", 5, 82, 90)
    assert detect(logged(rate, hf(), notes=(again,)), Params()) == []


def test_a_rate_of_zero_is_one_warning_and_the_plan_its_evidence():
    run = logged(rates("linear", 20, 34), hf(warmup_steps=20))
    found = {f.detector: f for f in judge(run, configure(Settings())).findings}
    assert found["lr_zero"].severity is Severity.ERROR
    assert found[ID].severity is Severity.INFO
    assert "learning rate is 0" in found[ID].message


@pytest.mark.slow
def test_the_settings_of_a_real_trainer_are_read_and_followed(tmp_path):
    """Hugging Face writes its arguments as a pickle beside the log; nothing is unpickled here."""
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = torch.nn.Linear(4, 2)

        def forward(self, x, labels):
            return {"loss": torch.nn.functional.cross_entropy(self.head(x), labels)}

    def train(name: str, stepped: bool) -> Run:
        out = tmp_path / name
        arguments = transformers.TrainingArguments(
            str(out), per_device_train_batch_size=4, max_steps=60, logging_steps=1, lr_scheduler_type="cosine",
            warmup_steps=10, learning_rate=1e-3, report_to=[], disable_tqdm=True, use_cpu=True, save_strategy="no",
        )  # fmt: skip
        model = Model()
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        flat = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: 1.0)
        data = [{"x": torch.randn(4), "labels": torch.tensor(i % 2)} for i in range(32)]
        own = (None, None) if stepped else (optimizer, flat)
        trainer = transformers.Trainer(model, arguments, train_dataset=data, optimizers=own)
        trainer.train()
        trainer.save_state()
        torch.save(arguments, out / "training_args.bin")
        (run,) = read_runs(str(out))
        return run

    assert detect(train("right", stepped=True), Params()) == []
    (finding,) = detect(train("wrong", stepped=False), Params())
    assert "the scheduler never steps" in finding.message
