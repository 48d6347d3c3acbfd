"""Recorded runs made by hand: what a healthy smoke run holds, and one planted fault for each exact detector."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from trainscope.core.run import Run, Series
from trainscope.detectors import by_id
from trainscope.detectors.base import Skipped

STEPS = 150


@dataclass(frozen=True, slots=True)
class LayersInMemory:
    """Per-layer statistics, one point a step from step 0 on."""

    values: Mapping[tuple[str, str], np.ndarray]

    def layers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(layer for layer, _ in self.values))

    def metrics(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(metric for _, metric in self.values))

    def series(self, layer: str, metric: str) -> Series:
        value = np.asarray(self.values.get((layer, metric), ()), dtype=np.float64)
        return Series(metric, np.arange(len(value)), value)


HEALTHY_LAYERS = LayersInMemory(
    {
        ("blocks.0.attn", "attn_logit_max"): np.full(STEPS, 5.0),
        ("blocks.0.mlp.1", "act_dead_fraction"): np.full(STEPS, 0.1),
        ("tokens.weight", "rms_t"): 1.0 + 0.3 * np.random.default_rng(4).random(STEPS),
        ("tokens.weight", "grad_max_abs"): np.random.default_rng(5).random(STEPS),
    }
)


def smoke_run(series: Mapping[str, object] | None = None, **facts: object) -> Run:
    """Return a healthy smoke run with some series and facts in place of its own; None takes one away.

    A fact `not_in_optimizer=[...]` is ``smoke.not_in_optimizer``, one with ``__`` has dots there.
    """
    n = STEPS
    rng = np.random.default_rng(0)
    healthy: dict[str, object] = {
        "train/loss": 4.0 * np.exp(-np.arange(n) / 40.0) + 1.0 + 0.02 * rng.standard_normal(n),
        "train/grad_norm": 1.0 + 0.1 * rng.random(n),
        "train/grad_norm_after_clip": np.full(n, 1.0),
        "learning_rate": np.full(n, 1e-3),
        "train/cpu_step_time": np.full(n, 0.02),
        "micro_batches": np.ones(n),
        "optimizer/m_norm": np.full(n, 2.0),
        "optimizer/update_norm": 1.0 + 0.1 * np.random.default_rng(1).random(n),
        "smoke/backward_calls": np.ones(n),
        "smoke/zero_grad_after_backward": np.zeros(n),
        "smoke/stale_gradients": np.zeros(n),
        "smoke/scheduler_steps": np.ones(n),
        "smoke/optimizer_steps": np.ones(n),
        "smoke/optimizers_created": np.ones(n),
        "smoke/optimizer_state_step": np.arange(1.0, n + 1),
        "smoke/clip_calls": np.ones(n),
        "smoke/clip_backward_calls": np.ones(n),
        "smoke/clip_max_norm": np.ones(n),
        "smoke/clip_norm_before": 1.0 + 0.1 * rng.random(n),
        "smoke/batch_hash": rng.integers(1, 2**32, n).astype(float),
        "smoke/target_hash": rng.integers(1, 2**32, n).astype(float),
        "smoke/eval_mode_modules": np.zeros(n),
        "smoke/train_mode_modules": np.full(n, 3.0),
        "smoke/cross_entropy": 3.0 * np.exp(-np.arange(n) / 40.0) + 0.5,
        "smoke/label_entropy": np.full(n, 3.2),
        "smoke/router_gradient": np.full(n, 0.1),
        "smoke/router_load_entropy": np.full(n, 0.95),
        "smoke/rank_gradient_spread": np.zeros(n),
        "smoke/rank_weight_spread": np.zeros(n),
        "model/weight_norm": 16.0 + np.arange(n) / 100.0,
        "memory/live_graphs": np.ones(n),
        "memory/cpu_mb": np.full(n, 300.0),
        "memory/peak_mb": np.full(n, 310.0),
        "batch/token_entropy": 3.0 + 0.05 * rng.standard_normal(n),
        "batch/repetition": 0.1 + 0.01 * rng.random(n),
    }
    healthy |= dict(series or {})
    found = {}
    for name, value in healthy.items():
        if isinstance(value, Series):
            found[name] = value
        elif value is not None:
            array = np.asarray(value, dtype=np.float64)
            found[name] = Series(name, np.arange(len(array)), array)
    config: dict[str, object] = {
        "smoke.steps": n, "smoke.schedulers": 1, "smoke.scheduler0.class": "CosineAnnealingLR",
        "smoke.optimizers": 1, "smoke.vocabulary": 30,
        "smoke.initial_cross_entropy": 3.5, "smoke.model.initial_hash": 7, "smoke.model.shapes_hash": 8,
        "smoke.scheduler0.horizon": 1000.0,
        "smoke.declared": '[{"what": "total_steps", "value": 1000, "name": "max_steps", "source": "arguments"}]',
        "smoke.batches": '[{"given": 150, "trained": 150, "dropped": 0, "skipped_at_start": 0, "steps": []}]',
        "env.world_size": 1, "env.processor": "a", "env.threads": 1,
    }  # fmt: skip
    for key, value in facts.items():
        name = key.replace("__", ".") if key.startswith("env__") else "smoke." + key.replace("__", ".")
        config[name] = json.dumps(value) if isinstance(value, (list, dict)) else value
    values = {k: v for k, v in config.items() if v is not None}
    return Run("smoke", "out/smoke", "recorded", found, values, layers=HEALTHY_LAYERS)


def with_layers(**statistics: Mapping[str, object]) -> Run:
    """Return a healthy smoke run with per-layer statistics: metric to layer to values."""
    values = {(layer, metric): value for metric, of in statistics.items() for layer, value in of.items()}
    return replace(smoke_run(), layers=LayersInMemory(values))


def ones(start: int, stop: int = STEPS, value: float = 1.0) -> np.ndarray:
    """Return zeros with `value` from step `start` on."""
    array = np.zeros(STEPS)
    array[start:stop] = value
    return array


def found(detector: str, run: Run) -> list:
    """Run one detector, which must not skip."""
    one = by_id(detector)
    result = one.detect(run, one.params)
    assert not isinstance(result, Skipped), result
    return result


def skipped(detector: str, run: Run) -> str:
    """Run one detector, which must skip, and return why."""
    one = by_id(detector)
    result = one.detect(run, one.params)
    assert isinstance(result, Skipped), result
    return result.reason


def single(detector: str, run: Run):
    """Run one detector, which must find one thing."""
    (one,) = found(detector, run)
    return one


def evaluated(*values: float) -> Series:
    """Return evaluations spread over the run."""
    step = np.linspace(STEPS // len(values), STEPS - 1, len(values)).astype(int)
    return Series("smoke/eval_cross_entropy", step, np.array(values))


SMOKE_PLANTED: Mapping[str, Run] = {
    "non_finite_origin": smoke_run(nonfinite_step=40, nonfinite_gradients=["head.weight"]),
    "parameters_not_training": smoke_run(
        not_in_optimizer=["norm.weight"], not_in_optimizer_used=["norm.weight"]
    ),
    "stale_gradients": smoke_run({"smoke/stale_gradients": ones(1, value=0.7)}),
    "clipping": smoke_run({"smoke/clip_backward_calls": np.zeros(STEPS)}),
    "optimizer_state": smoke_run({"smoke/optimizer_state_step": np.arange(STEPS) % 50 + 1.0}),
    "scheduler_pace": smoke_run(
        {"smoke/scheduler_steps": np.full(STEPS, 4.0), "micro_batches": np.full(STEPS, 4.0)},
        declared=None,
    ),
    "declared_schedule": smoke_run(scheduler0__horizon=300),
    "skipped_batches": smoke_run(
        batches=[{"given": 150, "trained": 50, "dropped": 100, "skipped_at_start": 0, "steps": [1]}]
    ),
    "step_accounting": smoke_run(
        {
            "smoke/backward_calls": 1.0 - ones(60, 70),
            "train/grad_norm": np.where(ones(59, 70) > 0, 1.05, np.linspace(1.1, 1.0, STEPS)),  # that of step 59 stays
        }
    ),
    "repeated_batches": smoke_run({"smoke/batch_hash": np.full(STEPS, 5.0)}),
    "eval_mode": smoke_run({"smoke/eval_mode_modules": ones(40, value=3.0)}, eval_mode_modules=["drop"]),
    "initial_loss": smoke_run(initial_cross_entropy=9.0),
    "unigram_floor": smoke_run({"smoke/cross_entropy": np.full(STEPS, 3.2)}),
    "train_eval_gap": smoke_run({"smoke/eval_cross_entropy": evaluated(2.0, 2.5, 3.5)}),
    "router": smoke_run({"smoke/router_gradient": np.zeros(STEPS)}),
    "rank_divergence": smoke_run({"smoke/rank_weight_spread": ones(20, value=0.04)}),
    "bad_batch": smoke_run({"batch/repetition": 0.1 + ones(80, 82, 0.9)}),
    "attention_logits": with_layers(attn_logit_max={"blocks.0.attn": 5.0 + ones(60, value=400.0)}),
    "dead_units": with_layers(act_dead_fraction={"blocks.0.mlp.1": 0.1 + ones(60, value=0.7)}),
    "weight_norm": smoke_run({"model/weight_norm": 16.0 * np.exp(-np.arange(STEPS) / 60.0)}),
    "graph_leak": smoke_run({"memory/live_graphs": np.arange(float(STEPS))}),
    "update_norm": smoke_run(
        {"optimizer/update_norm": (1.0 + ones(90, 92, 5.0)) * (1.0 + 0.1 * np.random.default_rng(1).random(STEPS))}
    ),
    "stale_moments": with_layers(rms_t={"tokens.weight": 1.0 + ones(100, 102, 2.0)}),
    "half_precision": with_layers(grad_max_abs={name: (2.0 + np.arange(STEPS) % 9) / 2**20 for name in "abcd"}),
    "loss_scale": smoke_run({"amp/grad_scale": 65536.0 / 2.0 ** np.clip(np.arange(STEPS) // 5 - 20, 0, 30)}),
}  # fmt: skip
