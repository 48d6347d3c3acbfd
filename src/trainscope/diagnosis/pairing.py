"""Whether two runs may be compared step by step, and which baseline is the best partner."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from trainscope.core import facts
from trainscope.core.run import Run
from trainscope.diagnosis.base import Pair, Pairing, align
from trainscope.diagnosis.configuration import changed

SAME_NOISE = 0.5
"""Least correlation of step-to-step loss changes that only shared batches bring about; independent streams: 0 ± 0.1."""
NEAR = 1e-3
"""Relative difference of losses that only rounding makes: fp32 1e-6, bf16 1e-3 (measured)."""
ROUNDING = {
    "learning_rate": 1e-9,
    "train/loss": 1e-4,
    "train/grad_norm": 5e-3,
    "train/grad_norm_after_clip": 5e-3,
    "optimizer/update_norm": 5e-3,
}
"""Largest relative difference that is rounding in the step in which it first shows; gradients in bf16 give 1e-3."""
FINE_ROUNDING = ROUNDING | {"train/loss": 1e-5, "train/grad_norm": 1e-4, "train/grad_norm_after_clip": 1e-4}
"""The same in single precision on a CPU; Adam turns the sign of a gradient that is nothing but rounding."""
EARLY, SIGMAS = 30, 3.0
"""Steps over which the losses of runs with other random masks differ to either side, and how far from 0 their mean."""
SINGLE = ("torch.float32", "float32", "torch.float64", "float64")
_CHOSEN = ("optimizer", "scheduler", "dropout_used", "model.batch_norm", "loss_reduction", "label_smoothing")
ENVIRONMENT = ("seed", "platform", "dtype", "torch", "device", "world_size")
"""Facts that must agree for a pair; what a recording does not say is taken to agree."""


def pair_with(run: Run, baselines: Sequence[Run]) -> Pair:
    """Return `run` with the baseline it pairs with, the first that does, else the first.

    Raises
    ------
    ValueError
        If there is no baseline.
    """
    if not baselines:
        raise ValueError("no baseline to compare with")
    pairings = [pairing_of(run, base) for base in baselines]
    best = next((i for i, p in enumerate(pairings) if p.exact), 0)
    return Pair(run, baselines[best], pairings[best], tuple(baselines))


def pairing_of(run: Run, base: Run) -> Pairing:
    """Tell whether differences at one step are the change's own, and if not, why."""
    reasons = environment_differences(run, base)
    stream = _stream_difference(run, base)
    return Pairing(not reasons and stream is None, (*reasons, *(() if stream is None else (stream,))))


def is_fine(run: Run) -> bool:
    """Tell whether a run is known to compute in single precision or better, on a CPU and without autocast."""
    if run.config.get("smoke.autocast") != "[]" or run.config.get("smoke.compiled"):
        return False
    if run.config.get("env.matmul_precision", "highest") != "highest":
        return False
    return facts.provenance(run, "dtype") in SINGLE and facts.provenance(run, "device") == "cpu"


def environment_differences(run: Run, base: Run) -> tuple[str, ...]:
    """Return the facts of :data:`ENVIRONMENT` in which the runs differ."""
    found = []
    for key in ENVIRONMENT:
        mine, theirs = facts.provenance(run, key), facts.provenance(base, key)
        if mine is not None and theirs is not None and mine != theirs:
            found.append(f"{key}: {theirs} in the baseline, now {mine}")
    return tuple(found)


def _stream_difference(run: Run, base: Run) -> str | None:
    """Tell how batches, first weights or random numbers differ; None if they agree or the losses do."""
    if _same_losses(run, base):
        return None
    batches = facts.first_difference(run, base, facts.BATCH)
    if batches is not None:
        return f"other batches from step {batches} on"
    weights = facts.initial_weights_differ(run, base)
    if weights:
        return "other first weights"
    random = facts.first_difference(run, base, facts.RANDOM)
    if random is not None:
        return f"another stream of random numbers from step {random} on"
    if _other_draws(run, base):
        return "random numbers of the first step (dropout, noise) drawn in another order"
    drift = _rounding_drift(run, base)
    if drift is not None:
        return f"rounding differs from step {drift} on and the training amplifies it"
    if facts.knows(run, facts.BATCH) and facts.knows(base, facts.BATCH):
        return None
    return None if _same_noise(run, base) else "the losses do not move together, as on other batches"


def _other_draws(run: Run, base: Run) -> bool:
    """Tell whether the runs drew the same random numbers for other things: dropout masks in another order.

    Where the masks are not known, the first loss differs though all that it hangs on is the same, and the difference
    goes to either side. One that a fault makes goes to one side, mostly; and only where nothing that anyone chose is
    another.
    """
    other_masks = facts.masks_differ(run, base)
    if other_masks is not None:
        return other_masks and not _chose(run, base)
    if any(one.config.get("smoke.first_step_random") is not True for one in (run, base)) or _chose(run, base):
        return False
    mine, theirs = run.get("train/loss"), base.get("train/loss")
    if mine is None or theirs is None:
        return False
    both = align(mine, theirs).finite()
    apart = (both.run - both.base)[:EARLY]
    if len(apart) < EARLY or abs(apart[0]) <= ROUNDING["train/loss"] * abs(both.base[0]):
        return False
    return abs(float(np.mean(apart))) <= SIGMAS * float(np.std(apart)) / sqrt(EARLY)


def _chose(run: Run, base: Run) -> bool:
    return any(key.startswith(_CHOSEN) for key, *_ in changed(run, base))


def _rounding_drift(run: Run, base: Run) -> int | None:
    """Return the step at which the runs part by no more than rounding, None if they part by more or not at all.

    An unstable training (high learning rate, bf16) turns another order of summation into another loss of 1 %
    within 100 steps; a fault shows at once in the step in which it first acts. Only where nothing that anyone
    chose is another, since a small change of a setting may begin as quietly.
    """
    if not facts.is_smoke(run) or _chose(run, base):
        return None
    first: int | None = None
    off: list[tuple[str, float]] = []
    fine = is_fine(run) and is_fine(base)
    for name, room in (FINE_ROUNDING if fine else ROUNDING).items():
        mine, theirs = run.get(name), base.get(name)
        if mine is None or theirs is None:
            return None
        both = align(mine, theirs)
        differs = both.run != both.base
        if not differs.any():
            continue
        at = int(both.step[np.argmax(differs)])
        if first is None or at < first:
            first, off = at, []
        if at == first:
            i = int(np.argmax(differs))
            off.append((name, abs(both.run[i] - both.base[i]) / (room * abs(both.base[i]) + 1e-300)))
    return first if all(ratio <= 1.0 for _, ratio in off) else None


def _same_losses(run: Run, base: Run) -> bool:
    """Tell whether the losses agree to rounding throughout: then the streams must."""
    mine, theirs = run.get("train/loss"), base.get("train/loss")
    if mine is None or theirs is None:
        return False
    both = align(mine, theirs).finite()
    return bool(len(both)) and bool(np.median(np.abs(both.run - both.base) / (np.abs(both.base) + 1e-12)) <= NEAR)


def _same_noise(run: Run, base: Run) -> bool:
    """Tell whether step-to-step changes of the losses correlate, as they do on the same batches."""
    mine, theirs = run.get("train/loss"), base.get("train/loss")
    if mine is None or theirs is None:
        return False
    both = align(mine, theirs).finite()
    if len(both) < 12:
        return False
    a, b = np.diff(both.run), np.diff(both.base)
    if not a.any() or not b.any():
        return bool(np.array_equal(a, b))
    # Ranks, so that one spike does not decide.
    return float(np.corrcoef(np.argsort(np.argsort(a)), np.argsort(np.argsort(b)))[0, 1]) >= SAME_NOISE
