"""Which planted or trained-in fault belongs to which detector; those of ``bench/structural`` stand in its cases."""

from __future__ import annotations

from collections.abc import Mapping

PLANTED: Mapping[str, tuple[str, ...]] = {
    "non_finite": ("not_a_number",),
    "zero_loss": ("gone_to_zero",),
    "divergence": ("slow_divergence", "blow_up"),
    "unrecovered_spike": ("unrecovered",),
    "spikes": ("spike_point", "spike_decay", "spike_early"),
    "loss_shift": ("level_shift",),
    "plateau": ("flat", "stuck"),
    "oscillation": ("oscillating", "grown_noise"),
    "epoch_order": ("same_order",),
    "epoch_steps": ("stairs",),
    "overfitting": ("overfit",),
    "eval_noise": ("noisy_evaluation",),
    "loss_floor": ("leak",),
    "reward_collapse": ("collapsed_policy",),
    "gan_imbalance": ("lost_game",),
    "policy_kl": ("kl_blow_up", "update_blow_up", "kl_negative"),
    "entropy_collapse": ("certain_too_soon",),
    "zero_std_groups": ("never_rewarded",),
    "preference_margin": ("coin",),
    "rollout_mismatch": ("other_temperature", "stale_sampler", "drift_at_rest"),
    "policy_ratio": ("too_much_clipped", "other_forward"),
    "grad_norm": ("grad_burst", "grad_drift", "clipped"),
    "grad_vanishing": ("grad_gone",),
    "lr_schedule": ("rate_jump", "rate_restart"),
    "lr_zero": ("rate_zero",),
    "throughput": ("slower",),
    "data_wait": ("waiting",),
    "memory_growth": ("leaking",),
    "step_order": ("missing_rows",),
}
"""Detector to faults of ``bench/planted.py``, ``more_faults.py`` and ``policy_faults.py`` that are its own."""

OF_POLICIES = frozenset({
    "policy_kl", "entropy_collapse", "zero_std_groups", "preference_margin", "rollout_mismatch", "policy_ratio",
})  # fmt: skip
"""Detectors that have nothing to judge in the log of a loss; their healthy logs are those of ``bench/policies.py``."""

NOT_IN_RECORDINGS = OF_POLICIES | {"reward_collapse", "reward_hacking"}
"""Detectors that skip every recording of the bench, which is of language models: a 0 there would say nothing."""
INFORM = frozenset({"epoch_steps", "data_wait"})
"""Detectors that only inform: what they say of a healthy log counts as a false alarm of theirs all the same."""

TRAINED: Mapping[str, tuple[str, ...]] = {
    "parameters_not_training": ("left_out_block",),
    "stale_gradients": ("no_zero_grad",),
    "optimizer_state": ("resume_optimizer", "resume_both"),
    "bad_batch": ("garbage_batch", "repeated_tokens"),
    "repeated_batches": ("loader_loop",),
    "unigram_floor": ("shuffled_labels",),
    "train_eval_gap": ("overfit_1500", "loader_loop"),
    "router": ("hot_router",),
    "grad_vanishing": ("decay_10",),
    "update_norm": ("resume_optimizer", "corrupt_weights", "corrupt_mlp"),
    "stale_moments": ("garbage_batch", "repeated_tokens"),
    "half_precision": ("fp16_underflow",),
    "attention_logits": ("rate_1e-1",),
    "dead_units": ("dead_relu",),
    "weight_norm": ("decay_10",),
}
"""Detector to faults of ``bench/diagnosis/faults.py`` that are its own."""

WHY_NOT: Mapping[str, str] = {
    "loss_scale": "needs mixed precision with a loss scale, which the trainings of this bench do without",
    "reward_hacking": "tells an information, which this bench does not count",
}
"""Detectors whose misses this bench does not measure, and why."""
