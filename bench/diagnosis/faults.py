"""The faults of the diagnosis bench: what each does to a training, and what broke it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from model import LENGTH, VOCABULARY, Shape
from torch import Tensor, nn

AT = 180
"""Step at which a sudden fault strikes; 300 in all."""
Batch = tuple[Tensor, Tensor]


PLAIN, RELU, MOE = Shape(), Shape(relu=True), Shape(experts=True)


@dataclass(frozen=True, slots=True)
class Setup:
    """A training. As it stands, a healthy one."""

    shape: Shape = PLAIN
    rate: float = 3e-3
    warm_up: int = 40
    beta2: float = 0.99
    decay: float = 0.1
    clip: float = 1.0
    """Largest gradient norm; 0 is none."""
    rows: int = 12
    accumulate: int = 1
    balance: float = 0.01
    constant: bool = False
    """Whether the learning rate stays at its peak."""
    text: int | None = None
    """Length of the training text, None for all of it."""
    noise: float = 0.0
    """Relative size of a perturbation of the first weights."""
    zero_grad: bool = True
    left_out: str = ""
    """Parameters with this in their name are in no optimizer."""
    frozen: str = ""
    """Parameters with this in their name do not require a gradient."""
    schedule: Callable[[int, float], float] = lambda _step, rate: rate
    """Step and planned learning rate to the one that is used."""
    batch: Callable[[int, Tensor, Tensor, torch.Generator, list[Batch]], Batch] = lambda _s, x, y, _g, _seen: (x, y)
    """Step, batch, generator and the batches of earlier steps to the batch that is used."""
    before: Callable[[int, nn.Module, torch.optim.Optimizer], None] = lambda _step, _model, _optimizer: None
    """Called before each step's forward."""
    gradients: Callable[[int, nn.Module], None] = lambda _step, _model: None
    """Called after each step's last backward, before clipping."""
    scale: Callable[[int], float] = lambda _step: 1.0
    """Loss scale at a step, for a trainer of its own making."""
    factor: float = 1.0
    """Factor on the objective, which the logged loss does not have."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """One fault, or one change that is none."""

    setup: Setup
    what: str
    causes: tuple[str, ...] = ()
    """Any of these is right at the top; none for a healthy run."""
    door: str = "recorder"
    """Who has to see it: ``recorder`` (Python), ``smoke`` (unchanged script), ``baseline`` (smoke and a control)."""
    layer: str | None = None
    """Prefix of the layers that must be named first."""
    traceless: bool = False
    """Whether it is known to leave no finding at this scale: shown, and counted neither as right nor as wrong."""


def _rate_spike(step: int, rate: float) -> float:
    return 30.0 * rate if AT <= step < AT + 5 else rate


def _garbage(step: int, x: Tensor, y: Tensor, generator: torch.Generator, _seen: list[Batch]) -> Batch:
    if not AT <= step < AT + 3:
        return x, y
    x, y = (torch.randint(VOCABULARY, x.shape, generator=generator) for _ in range(2))
    return x, y


def _repeated(step: int, x: Tensor, y: Tensor, generator: torch.Generator, _seen: list[Batch]) -> Batch:
    if not AT <= step < AT + 3:
        return x, y
    motif = torch.randint(VOCABULARY, (len(x), 3), generator=generator)
    window = motif.repeat(1, LENGTH // 3 + 2)
    return window[:, :LENGTH], window[:, 1 : LENGTH + 1]


def _shuffled(_step: int, x: Tensor, y: Tensor, generator: torch.Generator, _seen: list[Batch]) -> Batch:
    return x, y.flatten()[torch.randperm(y.numel(), generator=generator)].view_as(y)


def _leak(_step: int, x: Tensor, _y: Tensor, _generator: torch.Generator, _seen: list[Batch]) -> Batch:
    return x, x.clone()


def _loop(step: int, x: Tensor, y: Tensor, _generator: torch.Generator, seen: list[Batch]) -> Batch:
    return seen[step % 8] if step >= 8 else (x, y)


def _forget(step: int, _model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    if step == AT:
        optimizer.state.clear()


def _back_to_peak(step: int, rate: float) -> float:
    return 3e-3 if step >= AT else rate


def _hot_at_first(step: int, rate: float) -> float:
    return 0.3 if step < 6 else rate


def _doubling(step: int) -> float:
    return 2.0 ** (10 + step // 22)


def _half(scale: Callable[[int], float]) -> Callable[[int, nn.Module], None]:
    def through_half(step: int, model: nn.Module) -> None:
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter.grad = (parameter.grad * scale(step)).half().float() / scale(step)

    return through_half


def _hot_router(step: int, model: nn.Module, _optimizer: torch.optim.Optimizer) -> None:
    if step == 0:
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if "router" in name:
                    parameter.mul_(300.0)
                    parameter[0] += 30.0


def _corrupt(name: str, factor: float) -> Callable[[int, nn.Module, torch.optim.Optimizer], None]:
    def corrupt(step: int, model: nn.Module, _optimizer: torch.optim.Optimizer) -> None:
        if step == AT:
            with torch.no_grad():
                model.get_parameter(name).mul_(factor)

    return corrupt


def _burst(name: str, factor: float) -> Callable[[int, nn.Module], None]:
    def burst(step: int, model: nn.Module) -> None:
        if AT <= step < AT + 3:
            model.get_parameter(name).grad.mul_(factor)

    return burst


FAULTS: Mapping[str, Recipe] = {
    "rate_spike": Recipe(Setup(schedule=_rate_spike), "learning rate x30 for 5 steps, clipped", ("schedule",)),
    "rate_spike_unclipped": Recipe(
        Setup(schedule=_rate_spike, clip=0.0), "learning rate x30 for 5 steps", ("schedule",)
    ),
    "garbage_batch": Recipe(Setup(batch=_garbage), "3 batches of random tokens", ("data",)),
    "repeated_tokens": Recipe(Setup(batch=_repeated), "3 batches that repeat 3 tokens", ("data",)),
    "rate_3e-2": Recipe(Setup(rate=3e-2), "learning rate ten times too high", ("schedule",), "baseline"),
    "rate_1e-1": Recipe(Setup(rate=1e-1), "learning rate thirty times too high", ("schedule",)),
    "no_warm_up": Recipe(Setup(rate=1e-2, warm_up=0), "high learning rate without warm-up", ("schedule",), "baseline"),
    "no_zero_grad": Recipe(Setup(zero_grad=False), "gradients never cleared", ("structure",), "smoke"),
    "shuffled_labels": Recipe(Setup(batch=_shuffled), "labels of other inputs", ("structure",), "smoke"),
    "leak": Recipe(Setup(batch=_leak), "labels are the inputs", ("structure",), "smoke"),
    "loader_loop": Recipe(Setup(batch=_loop), "the same 8 batches over and over", ("structure",), "smoke"),
    "overfit": Recipe(Setup(text=4_000), "4,000 characters of text", ("generalization",), "smoke", traceless=True),
    "overfit_1500": Recipe(Setup(text=1_500), "1,500 characters of text", ("generalization",), "smoke"),
    "left_out_block": Recipe(
        Setup(left_out="blocks.0."), "a block in no optimizer", ("structure",), "smoke", layer="blocks.0."
    ),
    "frozen_block": Recipe(
        Setup(frozen="blocks.0."), "a block frozen by requires_grad", ("structure",), "baseline", layer="blocks.0."
    ),
    "resume_rate": Recipe(Setup(schedule=_back_to_peak), "resume with the schedule's peak", ("schedule",)),
    "resume_optimizer": Recipe(Setup(before=_forget), "resume without optimizer state", ("optimizer",)),
    "resume_both": Recipe(Setup(before=_forget, schedule=_back_to_peak), "both", ("optimizer", "schedule")),
    "fp16_overflow": Recipe(
        Setup(gradients=_half(_doubling), scale=_doubling), "loss scale doubles without a check", ("numerics",)
    ),
    "fp16_underflow": Recipe(
        Setup(gradients=_half(lambda _step: 2.0**-16)),
        "fp16 gradients 65,536 times too small",
        ("numerics",),
    ),
    "loss_x4": Recipe(Setup(factor=4.0), "objective four times the loss", ("structure",), "baseline"),
    "dead_relu": Recipe(
        Setup(RELU, schedule=_hot_at_first, clip=0.0), "learning rate 0.3 for 6 steps", ("schedule", "structure")
    ),
    "decay_10": Recipe(Setup(decay=10.0), "weight decay 10", ("optimizer",)),
    "hot_router": Recipe(
        Setup(MOE, before=_hot_router, balance=0.0), "router starts on one expert, no balance", ("routing",), "smoke"
    ),
    "corrupt_weights": Recipe(
        Setup(before=_corrupt("blocks.1.attn.qkv.weight", 10.0)),
        "weights of one tensor x10",
        ("numerics",),
        layer="blocks.1.attn",
    ),
    "corrupt_mlp": Recipe(
        Setup(before=_corrupt("blocks.0.mlp.2.weight", 30.0)),
        "weights of one tensor x30",
        ("numerics",),
        layer="blocks.0.mlp",
    ),
    "gradient_burst": Recipe(
        Setup(gradients=_burst("blocks.1.mlp.0.weight", 300.0), clip=0.0),
        "gradient of one tensor x300 for 3 steps",
        ("numerics",),
        layer="blocks.1.mlp",
    ),
    "gradient_burst_early": Recipe(
        Setup(gradients=_burst("blocks.0.attn.out.weight", 1000.0), clip=0.0),
        "gradient of one tensor x1000 for 3 steps",
        ("numerics",),
        layer="blocks.0.attn",
    ),
}
HEALTHY: Mapping[str, Recipe] = {
    "control": Recipe(Setup(), "the base training"),
    "control_relu": Recipe(Setup(RELU), "ReLU"),
    "control_experts": Recipe(Setup(MOE), "8 experts"),
    "control_qk_norm": Recipe(Setup(Shape(qk_norm=True)), "QK-norm"),
    "rate_1e-2": Recipe(Setup(rate=1e-2), "a higher and better learning rate"),
    "rate_1e-3": Recipe(Setup(rate=1e-3), "a lower one"),
    "constant_rate": Recipe(Setup(constant=True), "no decay"),
    "unclipped": Recipe(Setup(clip=0.0), "no clipping"),
    "no_decay": Recipe(Setup(decay=0.0), "weight decay 0"),
    "beta2_0.999": Recipe(Setup(beta2=0.999), "Adam's beta2 0.999"),
    "accumulate": Recipe(Setup(rows=6, accumulate=2), "two micro-batches a step"),
    "noise": Recipe(Setup(noise=1e-3), "first weights moved by a thousandth"),
}
RECIPES: Mapping[str, Recipe] = {**FAULTS, **HEALTHY}
