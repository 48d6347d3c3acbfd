"""What a finding says as a sign: where in a training step it shows, and since when.

``TOLD`` lists every detector that a story can be about. The others judge the log, the speed or the machine; they
say nothing about why training broke, and no story is told of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np

from trainscope.core.finding import Finding
from trainscope.core.metrics import LOSS_KINDS, Kind, kind
from trainscope.core.robust import MAD_TO_SIGMA
from trainscope.core.run import Run, Series
from trainscope.diagnosis.departures import LEVEL, SCORE
from trainscope.diagnosis.signs import Sign, Stage


class Manner(Enum):
    """How a fault stands in time."""

    INCIDENT = "incident"
    """It begins at a step: what else begins there belongs to it."""
    STATE = "state"
    """The run is like that; when it was noticed says little."""


@dataclass(frozen=True, slots=True)
class Told:
    """What kind of sign a detector finds."""

    stage: Stage
    manner: Manner = Manner.INCIDENT


FITTED = frozenset({"divergence", "loss_shift"})
"""Detectors whose first step is the turn of a fitted curve: a leap comes up to a few points later."""
NEAR, NEAR_SHARE = 4, 50
"""Points in which that leap is looked for: 4, or two of the hundred blocks into which they cut a run."""
FEWEST = 8
"""Points before that must say what was usual."""
_STATE = Manner.STATE
TOLD: Mapping[str, Told] = {
    "non_finite": Told(Stage.LOSS),
    "non_finite_origin": Told(Stage.GRADIENT),
    "zero_loss": Told(Stage.LOSS),
    "divergence": Told(Stage.LOSS),
    "unrecovered_spike": Told(Stage.LOSS),
    "spikes": Told(Stage.LOSS),
    "loss_shift": Told(Stage.LOSS),
    "plateau": Told(Stage.LOSS, _STATE),
    "oscillation": Told(Stage.LOSS, _STATE),
    "epoch_order": Told(Stage.DATA, _STATE),
    "overfitting": Told(Stage.EVAL, _STATE),
    "train_eval_gap": Told(Stage.EVAL, _STATE),
    "loss_floor": Told(Stage.LOSS, _STATE),
    "grad_norm": Told(Stage.GRADIENT),
    "grad_vanishing": Told(Stage.GRADIENT),
    "lr_schedule": Told(Stage.SCHEDULE),
    "lr_zero": Told(Stage.SCHEDULE, _STATE),
    "parameters_not_training": Told(Stage.UPDATE, _STATE),
    "stale_gradients": Told(Stage.GRADIENT, _STATE),
    "clipping": Told(Stage.GRADIENT, _STATE),
    "optimizer_state": Told(Stage.UPDATE),
    "scheduler_pace": Told(Stage.SCHEDULE, _STATE),
    "step_accounting": Told(Stage.GRADIENT, _STATE),
    "bad_batch": Told(Stage.DATA),
    "repeated_batches": Told(Stage.DATA, _STATE),
    "eval_mode": Told(Stage.ACTIVATION, _STATE),
    "initial_loss": Told(Stage.LOSS, _STATE),
    "unigram_floor": Told(Stage.LOSS, _STATE),
    "router": Told(Stage.ACTIVATION, _STATE),
    "rank_divergence": Told(Stage.GRADIENT, _STATE),
    "weight_norm": Told(Stage.UPDATE),
    "update_norm": Told(Stage.UPDATE),
    "stale_moments": Told(Stage.UPDATE),
    "half_precision": Told(Stage.GRADIENT, _STATE),
    "loss_scale": Told(Stage.SCHEDULE),
    "attention_logits": Told(Stage.ACTIVATION),
    "dead_units": Told(Stage.ACTIVATION),
    "paired_loss": Told(Stage.LOSS, _STATE),
    "eval_change": Told(Stage.EVAL, _STATE),
    "parameter_change": Told(Stage.UPDATE, _STATE),
    "first_step": Told(Stage.GRADIENT, _STATE),
    "paired_signals": Told(Stage.GRADIENT, _STATE),
    "learning_rate_change": Told(Stage.SCHEDULE, _STATE),
    "data_change": Told(Stage.DATA, _STATE),
    "setting_change": Told(Stage.UPDATE, _STATE),
}
"""Detector id to the kind of sign it is."""


def told(finding: Finding) -> Told | None:
    """Return what kind of sign a finding is, None where no story can be about it."""
    kind_of = TOLD.get(finding.detector)
    if kind_of is None:
        return None
    if finding.detector == "grad_norm" and "ratio" not in finding.evidence:
        return None  # saturation: clipping as it was asked for
    if finding.detector == "grad_norm" and "lowest" in finding.evidence:
        return Told(Stage.GRADIENT, _STATE)
    if finding.detector == "lr_schedule" and finding.title == "No warm-up":
        return Told(Stage.SCHEDULE, _STATE)
    if finding.detector == "non_finite" and finding.metric is not None:
        stage = _stage_of(finding.metric)
        return None if stage is None else Told(stage)
    return kind_of


def _stage_of(metric: str) -> Stage | None:
    what = kind(metric)
    if what is Kind.EVAL_LOSS:
        return Stage.EVAL
    if what is Kind.LEARNING_RATE:
        return Stage.SCHEDULE
    if what in LOSS_KINDS:
        return Stage.LOSS
    return Stage.GRADIENT if what is Kind.GRAD_NORM else None


def sign_of(finding: Finding, run: Run) -> Sign | None:
    """Return the sign that a finding is, None where no story can be about it."""
    about = told(finding)
    if about is None:
        return None
    event, is_sentence = _clause(finding)
    return Sign(
        step=_first_step(finding, run),
        stage=about.stage,
        signal=finding.metric or finding.detector,
        event=event,
        where=finding.layer,
        end_step=finding.end_step,
        score=_score(finding),
        detector=finding.detector,
        is_sentence=is_sentence,
    )


def _first_step(finding: Finding, run: Run) -> int:
    """Return the first step that shows it: of a jump the step after it, whose value is the new one.

    A finding of several metrics that are not finite begins with the first of them, which need not be its own.
    """
    first = run.first_step or 0
    own = finding.title == "Learning rate jumps" or finding.detector == "non_finite"
    if own and finding.peak_step is not None:
        return finding.peak_step
    if finding.start_step is None:
        return first
    loss = run.get(finding.metric or "")
    if finding.detector not in FITTED or loss is None:
        return finding.start_step
    return _leap_after(loss.finite(), finding.start_step)


def _leap_after(loss: Series, start: int) -> int:
    """Return the step at which a loss leaps that was as usual from `start` to there; `start` where it creeps up."""
    at = int(np.searchsorted(loss.step, start))
    before = loss.value[max(0, at - LEVEL) : at]
    if len(before) < FEWEST:
        return start
    level, highest = float(np.median(before)), float(before.max())
    away = SCORE * MAD_TO_SIGMA * float(np.median(np.abs(before - level)))
    for i in range(at, min(at + max(NEAR, len(loss) // NEAR_SHARE), len(loss))):
        if loss.value[i] > max(level + away, highest):
            return int(loss.step[i])
        if loss.value[i] > max(level + away / 2, highest):
            break  # on its way already
    return start


def _clause(finding: Finding) -> tuple[str, bool]:
    """Return the first sentence of a message without its full stop, and whether it keeps its subject."""
    sentence = finding.message.partition(". ")[0].rstrip(".")
    clause = sentence.removeprefix(f"{finding.metric} ") if finding.metric else sentence
    if clause != sentence or not clause:
        return clause, False
    return clause[0].lower() + clause[1:], True


def _score(finding: Finding) -> float:
    value = finding.evidence.get("score", 0.0)
    return float(value) if isinstance(value, (int, float)) else 0.0
