"""One event, one warning: findings that tell again, on another metric, what a finding tells already.

A loss that jumps and a gradient norm that explodes at the same steps are one incident, and so are a player that has
won and its opponent's rising loss, preferences that are not learned and a loss that stays at ln 2, or batches in one
order and a loss that swings with them. The finding on the metric that matters, or with the reason, keeps its severity;
the other one becomes info that names it, so that its numbers stay as evidence while the count of warnings is that of
events.
What only the gradient shows, or shows before the loss does, stays a warning: it is the only sign, or the first. What
happens inside the optimizer is the evidence of what is found beside it, before or after.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from trainscope.core.facts import is_smoke
from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run

INCIDENTS = frozenset({"spikes", "unrecovered_spike", "loss_shift", "divergence"})
"""Detectors of a loss that leaves its level."""
CAUSES: Mapping[str, frozenset[str]] = {
    "update_norm": frozenset({"optimizer_state", "weight_norm", "bad_batch", *INCIDENTS}),
    "grad_vanishing": frozenset({"weight_norm", "dead_units", "half_precision", "attention_logits"}),
    "loss_scale": frozenset({"non_finite"}),
    "stale_moments": frozenset({"optimizer_state", "bad_batch", "update_norm", *INCIDENTS}),
}
"""Detectors of the inside of an optimizer, a layer or a scaler, and those that say near by why, or what came of it."""
EXPLAINED: Mapping[str, frozenset[str]] = {
    "plateau": frozenset({"preference_margin"}),
    "oscillation": frozenset({"epoch_order"}),
    "declared_schedule": frozenset({"lr_schedule", "lr_zero"}),
}
"""Detectors of how a whole run is, and those that say the same of it with its reason."""
REACH = 20
"""Steps between the first signs of one incident; public postmortems tell of 4 (BLOOM) to 8 (stale second moments)."""
INTERVALS = 3
"""Logging intervals, where that is more."""


def told_once(run: Run, findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings in their order, those that repeat another one as info; flat stairs are not told at all.

    Parameters
    ----------
    run : Run
        What the findings are about.
    findings : sequence of Finding
        Of all detectors.
    """
    if any(f.detector == "epoch_steps" for f in findings):  # each stair is flat, and that is all there is to it
        findings = [f for f in findings if f.detector != "plateau"]
    grave = [f for f in findings if f.severity >= Severity.WARNING]
    jumps = [f for f in grave if f.detector in INCIDENTS]
    games = [f for f in grave if f.detector == "gan_imbalance"]
    others = {name: [f for f in grave if f.detector in of] for name, of in {**CAUSES, **EXPLAINED}.items()}
    reach = _reach(run)
    return [f if f.severity < Severity.WARNING else _once(run, f, jumps, games, others, reach) for f in findings]


def _once(
    run: Run,
    finding: Finding,
    jumps: list[Finding],
    games: list[Finding],
    others: Mapping[str, list[Finding]],
    reach: int,
) -> Finding:
    if finding.detector in CAUSES and (finding.layer is not None or finding.detector != "grad_vanishing"):
        near = (f for f in others[finding.detector] if _meet(finding, f, reach))
        return _part_of(finding, next(near, None))
    if finding.detector == "grad_norm" and "points" in finding.evidence and "ratio" in finding.evidence:
        return _part_of(finding, next((f for f in jumps if _meet(finding, f, 0)), None))
    if finding.detector in EXPLAINED and not (finding.detector == "declared_schedule" and is_smoke(run)):
        return _part_of(finding, next(iter(others[finding.detector]), None))
    if finding.detector in INCIDENTS:
        return _part_of(finding, next((f for f in games if _is_player(finding, f) and _meet(finding, f, reach)), None))
    return finding


def _part_of(finding: Finding, event: Finding | None) -> Finding:
    if event is None:
        return finding
    title = event.title[0].lower() + event.title[1:]
    message = f"{finding.message} It is part of what {event.metric} shows from step {event.start_step} on ({title})."
    return replace(finding, severity=Severity.INFO, message=message)


def _meet(one: Finding, other: Finding, reach: int) -> bool:
    """Tell whether the first finding begins within reach of the second, or while it lasts."""
    if one.start_step is None or other.start_step is None or other.end_step is None:
        return False
    return other.start_step - reach <= one.start_step <= other.end_step + reach


def _is_player(finding: Finding, game: Finding) -> bool:
    players = (*(game.metric or "").split(" + "), str(game.evidence.get("loser", "")))
    return finding.metric in players


def _reach(run: Run) -> int:
    loss = run.get("train/loss") or max(run.series.values(), key=len, default=None)
    if loss is None or len(loss) < 2:
        return REACH
    return max(REACH, INTERVALS * int(np.median(np.diff(loss.step))))
