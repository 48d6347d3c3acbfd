"""What loggers call the columns that are no metrics: one table for all readers.

Names are compared as :func:`plain_name` writes them: words in lower case with underscores between.
"""

from __future__ import annotations

from trainscope.core.metrics import Kind, kind, tokens

STEP_NAMES = (
    "step",
    "steps",
    "global_step",
    "trainer_global_step",
    "train_global_step",
    "training_step",
    "train_step",
    "optimizer_step",
    "opt_step",
    "global_step_max_steps",
    "current_steps",
    "current_step",
    "iteration",
    "iterations",
    "iter",
    "iters",
    "it",
    "itr",
    "num_updates",
    "n_updates",
    "nupdates",
    "update",
    "updates",
    "num_steps",
    "step_idx",
    "_step",
    "timesteps",
    "total_timesteps",
    "time_total_timesteps",
    "timesteps_so_far",
    "timesteps_total",
    "num_timesteps",
    "misc_total_timesteps",
    "env_step",
    "env_steps",
    "batch",
    "batch_idx",
    "batch_index",
    "batches",
    "minibatch",
)
"""Words that name a step counter, best first. ``_step`` is W&B's own count of log calls."""
WEAK_STEP_NAMES = (
    "t",
    "i",
    "tick",
    "progress_tick",
    "idx",
    "index",
    "counter",
    "episode",
    "episodes",
    "generation",
    "round",
)
"""Words that name a step counter only where the column does count upwards."""
STAMP_NAMES = frozenset(
    {
        "timestamp",
        "time_stamp",
        "wall_time",
        "walltime",
        "datetime",
        "date",
        "time",
        "created_at",
        "logged_at",
        "unix_time",
        "ts",
    }
)
ELAPSED_NAMES = frozenset(
    {
        "runtime",
        "elapsed_time",
        "elapsed",
        "time_elapsed",
        "time_time_elapsed",
        "total_duration",
        "total_time",
        "wall_clock",
        "relative_time",
        "seconds_elapsed",
        "misc_time_elapsed",
        "time",
        "t",
    }
)
RUN_NAMES = frozenset(
    {
        "run",
        "run_id",
        "runid",
        "run_name",
        "name",
        "experiment",
        "experiment_name",
        "exp",
        "exp_name",
        "trial",
        "trial_id",
        "trial_name",
        "seed",
        "job_id",
        "model_name",
        "version",
    }
)
"""Columns that say which run a row belongs to, where they hold text or whole numbers."""
PHASE_NAMES = frozenset(
    {
        "phase",
        "split",
        "mode",
        "stage",
        "type",
        "dataset",
        "subset",
        "partition",
        "set",
        "kind",
        "event",
        "tag",
    }
)
PHASES = {
    "train": "train",
    "training": "train",
    "learn": "train",
    "val": "eval",
    "valid": "eval",
    "validation": "eval",
    "eval": "eval",
    "evaluation": "eval",
    "dev": "eval",
    "test": "test",
    "testing": "test",
}
TOTAL_NAMES = frozenset(
    {
        "total_steps",
        "max_steps",
        "num_train_epochs",
        "num_epochs",
        "max_epochs",
        "total_epochs",
        "max_iters",
        "total_iters",
    }
)
CONTAINERS = frozenset(
    {
        "metrics",
        "metric",
        "data",
        "logs",
        "log",
        "scalars",
        "values",
        "stats",
        "payload",
        "results",
    }
)
"""Keys that only wrap the metrics: ``{"step": 1, "metrics": {"loss": 2}}`` holds ``loss``."""


def plain_name(raw: str) -> str:
    """Return a column name as the words of `STEP_NAMES` are written."""
    return "_step" if raw.strip() == "_step" else "_".join(tokens(raw))


def is_clockwork(name: str) -> bool:
    """Tell whether a column only counts or measures time, and so stands on rows of every kind."""
    plain = plain_name(name)
    return kind(name) is Kind.PROGRESS or plain in STEP_NAMES or plain in STAMP_NAMES or plain in ELAPSED_NAMES
