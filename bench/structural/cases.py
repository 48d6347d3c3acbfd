"""Which small training has which detector's fault, and which only looks like one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

AT = 24
"""Step at which a fault strikes that is not there from the start; as in ``task.py``, which loads torch."""


@dataclass(frozen=True, slots=True)
class Cases:
    """The trainings of one script."""

    script: str
    faults: tuple[str, ...]
    healthy: tuple[str, ...]
    ranks: int = 1
    without: frozenset[tuple[str, int]] = frozenset()
    """Variants that a kind of data, the seed's remainder by three, does not have."""


CASES: Mapping[str, Cases] = {
    "non_finite_origin": Cases(
        "not_finite",
        (
            "log_of_zero", "half_precision", "one_gradient", "distance_of_equals", "input_not_a_number", "empty_mean",
            "nothing_to_attend",
        ),
        ("scale_refused", "classes_closed", "guarded", "metric_not_a_number", "left_out_by_hand", "skipped_by_hand"),
        without=frozenset({("input_not_a_number", 2)}),
    ),
    "clipping": Cases(
        "clipping",
        (
            "before_backward", "before_last_micro_batch", "after_step", "still_scaled", "of_a_copy", "exhausted_list",
            "head_only", "scaled_up_after",
        ),
        ("usual", "unscaled", "by_part", "each_micro_batch", "only_to_log", "by_value"),
    ),
    "scheduler_pace": Cases(
        "pace",
        ("each_micro_batch", "outside_the_condition", "called_twice", "each_example", "from_some_epoch_on"),
        (
            "each_step", "restarts", "each_epoch", "two_schedulers", "one_after_the_other", "on_evaluation",
            "two_optimizers", "planned_in_micro_batches",
        ),
    ),
    "declared_schedule": Cases(
        "declared",
        (
            "counts_micro_batches", "ends_early", "longer_warm_up", "warm_up_lost", "whole_division", "never_stepped",
            "overwritten", "epochs_by_batches", "half_by_hand",
        ),
        (
            "as_declared", "by_epochs", "long_constant", "warm_restarts", "constant", "to_a_floor", "by_milestones",
            "cut_short", "ends_with_the_loss",
        ),
    ),
    "step_accounting": Cases(
        "accounting",
        (
            "without_backward", "stepped_twice", "counted_wrongly", "rest_of_the_epoch_lost", "rest_of_the_epoch_added",
            "cleared_each_micro_batch", "no_gradient_after_a_while",
        ),
        ("short_last_window", "two_backwards", "sharpness", "by_closure", "by_grad", "growing", "to_a_budget"),
    ),
    "skipped_batches": Cases(
        "reading",
        (
            "outside_the_loop", "outside_with_new_loaders", "read_twice", "skipped_for_accumulated",
            "always_the_first", "overwritten", "wrong_filter",
        ),
        (
            "each_once", "accumulated", "fetched_ahead", "part_of_each_epoch", "one_read_too_many", "resumed",
            "evaluated", "rare_filter", "mixed",
        ),
    ),
    "eval_mode": Cases(
        "modes",
        (
            "lost_after_evaluation", "part_of_the_model", "never_in_train_mode", "frozen_norms", "last_epoch_wins",
            "dropout_as_a_function",
        ),
        (
            "restored", "probe", "probe_without_dropout", "frozen_from_the_start", "taught", "judged_by_a_network",
            "looked_at",
        ),
    ),
    "initial_loss": Cases(
        "first",
        ("deviation_1", "temperature_inverted", "wrong_prior", "raw_inputs", "summed", "labels_from_1"),
        (
            "usual", "smoothed", "weighted", "other_head", "many_classes", "rare_classes", "padded",
            "normalised_logits",
        ),
        without=frozenset({("raw_inputs", 2)}),
    ),
    "rank_divergence": Cases(
        "ranks",
        (
            "other_seeds", "never_reduced", "outside_the_wrapper", "synchronised_too_early", "same_batches",
            "other_rates", "buffers_apart",
        ),
        ("usual", "synchronised_last", "averaged_by_hand", "partly_frozen", "evaluated_on_one", "local_steps"),
        ranks=2,
        without=frozenset({("buffers_apart", 2)}),
    ),
    "graph_leak": Cases(
        "graphs",
        ("losses_kept", "sum_kept", "outputs_kept", "features_kept", "evaluations_kept", "state_not_detached"),
        (
            "state_detached", "numbers_kept", "sum_of_an_epoch", "last_few_kept", "two_losses", "penalised",
            "through_time",
        ),
    ),
}  # fmt: skip
"""Detector to the trainings of its script."""

SAYS: Mapping[str, tuple[str, int | None]] = {
    "log_of_zero": ("at or after module last", AT),
    "half_precision": ("at or after module last", AT),
    "one_gradient": ("in a gradient, while the loss of that step is finite", AT),
    "distance_of_equals": ("in a gradient, while the loss of that step is finite", AT),
    "input_not_a_number": ("the model's input is not finite", None),
    "empty_mean": ("in the loss itself", AT),
    "nothing_to_attend": ("first in SoftmaxBackward0 at or after module", AT),
}
"""Words and step with which a fault of ``not_finite.py`` is named rightly; None for a step that the seed draws."""

IN_GATE: Mapping[str, tuple[str, ...]] = {
    "non_finite_origin": ("digits_cnn class_mean_nan", "moe_gpt load_entropy_nan"),
    "clipping": ("chargpt clip_before_backward",),
    "scheduler_pace": ("chargpt sched_per_micro",),
    "declared_schedule": (
        "chargpt sched_per_micro", "chargpt warmup_int_division", "digits_cnn sched_per_batch",
        "digits_cnn scheduler_lost", "moe_gpt decay_ends_early", "moe_gpt warmup_lost",
    ),
    "step_accounting": ("chargpt zero_grad_per_micro",),
    "eval_mode": ("chargpt train_mode_lost", "digits_cnn train_mode_lost"),
    "initial_loss": ("moe_gpt init_std_1", "digits_cnn loss_sum", "digits_cnn softmax_twice"),
    "graph_leak": ("chargpt eval_keeps_graphs", "digits_cnn feature_cache_leak", "moe_gpt routing_history"),
}  # fmt: skip
"""Detector to the bugs of the benchmark of the gate that are of its kind."""
