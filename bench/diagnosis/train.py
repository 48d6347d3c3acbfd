"""Train the small GPT for 300 steps with one fault of the bench; recorded with --record, logged with --log.

python bench/diagnosis/train.py rate_spike --seed 0 --record FOLDER --log FILE
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import ClassVar

import torch
from faults import RECIPES, Setup
from model import GPT, HELD_OUT, TRAIN, VOCABULARY, cosine, windows
from torch import Tensor, nn
from torch.nn import functional

from trainscope import TrainScope, TrainScopeConfig
from trainscope.recorder.plugins import MetricPlugin

STEPS, EVALUATE = 300, 25


class Evaluation(MetricPlugin):
    """The evaluation that a script logs."""

    name: ClassVar[str] = "eval"

    def __init__(self) -> None:
        self.last: dict[str, float] = {}

    def compute(self, model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> dict[str, float]:  # noqa: ARG002
        """Return the loss of an evaluation since the last step, if there was one."""
        found, self.last = self.last, {}
        return found


class Batches(MetricPlugin):
    """What a batch is made of, before it can do harm."""

    name: ClassVar[str] = "batch"

    def __init__(self) -> None:
        self.x = torch.zeros(0, 0, dtype=torch.int64)

    def compute(self, model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> dict[str, float]:  # noqa: ARG002
        """Return the entropy of the tokens, in nat, and the share of them that repeat one up to 13 before."""
        share = torch.bincount(self.x.flatten(), minlength=VOCABULARY) / self.x.numel()
        entropy = torch.special.entr(share).sum().item()
        periods = [(self.x[:, p:] == self.x[:, :-p]).float().mean(1) for p in range(1, 14)]
        return {"token_entropy": entropy, "repetition": torch.stack(periods).amax(0).mean().item()}


def loss_of(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return functional.cross_entropy(model(x).flatten(0, 1), y.flatten())


def prepared(setup: Setup, seed: int) -> tuple[GPT, torch.optim.Optimizer]:
    """Return the model and its optimizer, with what is wrong from the start."""
    torch.manual_seed(seed)
    model = GPT(setup.shape)
    if setup.noise:
        generator = torch.Generator().manual_seed(99)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(1.0 + setup.noise * torch.randn(parameter.shape, generator=generator))
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not setup.frozen or setup.frozen not in name)
    chosen = [
        p for n, p in model.named_parameters() if p.requires_grad and (not setup.left_out or setup.left_out not in n)
    ]
    return model, torch.optim.AdamW(chosen, lr=setup.rate, betas=(0.9, setup.beta2), weight_decay=setup.decay)


def train(
    setup: Setup,
    seed: int,
    steps: int,
    scope: TrainScope | None,
    evaluation: Evaluation,
    batches: Batches,
    model: GPT,
    optimizer: torch.optim.Optimizer,
    log: Path,
) -> None:
    """Train, and write what any script would log."""
    generator, held_out = torch.Generator().manual_seed(seed), windows(HELD_OUT, 24, torch.Generator().manual_seed(123))
    text = TRAIN[: setup.text]
    seen = []
    after_nan = 0
    rows = []
    for step in range(steps):
        rate = (
            setup.rate if setup.constant and step >= setup.warm_up else cosine(step, steps, setup.rate, setup.warm_up)
        )
        rate = setup.schedule(step, rate)
        for group in optimizer.param_groups:
            group["lr"] = rate
        setup.before(step, model, optimizer)
        if setup.zero_grad:
            optimizer.zero_grad()
        total = 0.0
        for _ in range(setup.accumulate):
            batch = setup.batch(step, *windows(text, setup.rows, generator), generator, seen)
            seen.append(batch)
            batches.x = batch[0]
            loss = loss_of(model, *batch)
            objective = setup.factor * (loss + setup.balance * model.balance()) / setup.accumulate
            objective.backward()
            total += loss.item() / setup.accumulate
        setup.gradients(step, model)
        norm = nn.utils.clip_grad_norm_(model.parameters(), setup.clip or math.inf)
        if scope is not None:
            scope.step(total, batch_index=step)
        optimizer.step()
        row = {"step": step, "loss": total, "grad_norm": norm.item(), "learning_rate": rate}
        if step % EVALUATE == EVALUATE - 1:
            model.eval()
            with torch.no_grad():
                row["eval_loss"] = loss_of(model, *held_out).item()
            evaluation.last = {"loss": row["eval_loss"]}
            model.train()
        rows.append(row)
        after_nan += not math.isfinite(total)
        if after_nan >= 10:
            break
    log.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def run(name: str, seed: int, steps: int, log: Path, record: Path | None) -> None:
    """Train with one fault; write its log, and its recording where one is wanted."""
    torch.set_num_threads(1)
    setup = RECIPES[name].setup
    model, optimizer = prepared(setup, seed)
    evaluation, batches = Evaluation(), Batches()
    if record is None:
        train(setup, seed, steps, None, evaluation, batches, model, optimizer, log)
        return
    config = TrainScopeConfig(
        run_dir=str(record.parent),
        run_name=record.name,
        activation_metrics_every_n_steps=2,
        histogram_every_n_steps=1_000_000,
        track_memory=False,
        metric_plugins=[evaluation, batches],
    )
    with TrainScope(model, optimizer, config) as scope:
        train(setup, seed, steps, scope, evaluation, batches, model, optimizer, log)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fault", choices=[*RECIPES])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--record", type=Path, help="folder for the recorder's run")
    parser.add_argument("--log", type=Path, required=True)
    options = parser.parse_args()
    run(options.fault, options.seed, options.steps, options.log, options.record)


if __name__ == "__main__":
    main()
