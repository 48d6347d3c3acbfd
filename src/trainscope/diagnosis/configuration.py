"""Which settings of a training changed: optimizer, scheduler, dropout, what the log says of itself."""

from __future__ import annotations

from trainscope.core.run import Run, Scalar

_ABOUT = (
    "smoke.optimizer",
    "smoke.scheduler",
    "smoke.dropout_used",
    "smoke.model.batch_norm_momentum",
    "smoke.model.modules",
    "smoke.loss_reduction",
    "smoke.label_smoothing",
    "smoke.vocabulary",
    "smoke.autocast",
    "smoke.checkpointed",
    "smoke.loaders",
)
"""Facts of a smoke run that someone chose; the rest is what came of it."""


def changed(run: Run, base: Run) -> tuple[tuple[str, Scalar, Scalar], ...]:
    """Return (setting, in the baseline, now) for each that differs; missing is None."""
    keys = [k for k in dict.fromkeys((*base.config, *run.config)) if is_chosen(k)]
    pairs = ((k.removeprefix("smoke."), base.config.get(k), run.config.get(k)) for k in keys)
    return tuple((k, before, now) for k, before, now in pairs if before != now)


def is_chosen(key: str) -> bool:
    """Tell whether someone chose a setting, as opposed to what a recorder found out."""
    if not key.startswith(("smoke.", "env.")):
        return True
    return key.startswith(_ABOUT)
