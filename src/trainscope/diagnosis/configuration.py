"""Which settings of a training changed: optimizer, scheduler, dropout, what the log says of itself."""

from __future__ import annotations

import json

from trainscope.core.run import Run, Scalar

_LOADERS = "smoke.loaders"
_OF_A_LOADER = ("samples", "batch_size", "sampler", "workers", "drop_last")
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
    _LOADERS,
)
"""Facts of a smoke run that someone chose; the rest is what came of it."""


def changed(run: Run, base: Run) -> tuple[tuple[str, Scalar, Scalar], ...]:
    """Return (setting, in the baseline, now) for each that differs; missing is None."""
    keys = [k for k in dict.fromkeys((*base.config, *run.config)) if is_chosen(k)]
    pairs = ((k.removeprefix("smoke."), _chosen(k, base.config.get(k)), _chosen(k, run.config.get(k))) for k in keys)
    return tuple((k, before, now) for k, before, now in pairs if before != now)


def _chosen(key: str, value: Scalar) -> Scalar:
    """Return what someone chose of a setting: of loaders not what was read of them."""
    if key != _LOADERS or not isinstance(value, str):
        return value
    try:
        loaders = [{name: one[name] for name in _OF_A_LOADER if name in one} for one in json.loads(value)]
    except (ValueError, TypeError):
        return value
    return json.dumps(loaders, ensure_ascii=False)


def is_chosen(key: str) -> bool:
    """Tell whether someone chose a setting, as opposed to what a recorder found out."""
    if not key.startswith(("smoke.", "env.")):
        return True
    return key.startswith(_ABOUT)
