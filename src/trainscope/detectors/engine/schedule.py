"""What a smoke run declares of its learning-rate schedule, in optimizer steps."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor

import numpy as np

from trainscope.core import facts
from trainscope.core.run import Run, Series

EPOCHS = "the epochs of"
ON_A_METRIC = "ReduceLROnPlateau"
"""A scheduler that waits for an evaluation, and may do so for ever."""
WHOLE = 0.9
"""Share of the declared steps after which a scheduler that has not stepped once never will."""
LEAST_DECAY = 15
"""Steps of a decay below which nothing is read off it."""
EXACT = 2e-3
"""Largest distance, as a share of the decay, at which a learning rate is taken to follow a line or a cosine."""
NEAR = 0.05
"""Relative difference at which a ratio is taken for a factor."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Declared lengths, and those that the scheduler will have at the pace it is stepped."""

    warmup: float | None
    """Declared, in optimizer steps."""
    warmup_source: str
    total: float | None
    """Declared, in optimizer steps."""
    total_source: str
    totals: tuple[float, ...]
    """The same by other ways to count the steps of an epoch: its last window of micro-batches may be short."""
    may_end_early: bool
    """Whether a schedule shorter than declared may be meant: a floor after it, or steps that end before the epochs."""
    own_warmup: float | None
    """The scheduler's, in optimizer steps; None where it does not say."""
    horizon: float | None
    """The scheduler's whole length, in optimizer steps, or where the recorded rate heads for 0; None if unknown."""
    fitted: bool
    """Whether that was read off the learning rate."""
    stepped: bool
    """Whether any scheduler stepped."""
    unused: str | None
    """Class of a scheduler that never stepped, though it was made for the declared steps, or they are over."""
    unused_steps: float
    """What it was made for; 0 where it does not say."""
    factors: tuple[tuple[str, float], ...]
    """Words and factor of the usual mistakes."""

    @property
    def lengths(self) -> tuple[float, ...]:
        """Lengths that the schedule may have meant: a decay may count from the end of the warm-up."""
        whole = self.horizon or 0.0
        return whole, *(whole + w for w in {self.own_warmup, self.warmup} if w)

    def reason(self, ratio: float) -> str | None:
        """Name the mistake that makes a length `ratio` times what is declared, None if it is none of the usual."""
        for words, factor in self.factors:
            if factor > 1.0 and any(abs(ratio / f - 1.0) <= NEAR for f in (factor, 1.0 / factor)):
                times = f"{ratio:.3g} times" if ratio > 1 else f"a {1 / ratio:.3g}th of"
                return f"{times} it, the number of {words}"
        return None


def read(run: Run, warmup: float, total: float) -> Schedule:
    """Read the facts.

    Parameters
    ----------
    warmup, total : float
        Declared in the settings; above 0 they win.
    """
    said = {str(fact.get("what")): fact for fact in facts.table(run, "smoke.declared")}
    loader = _loader_batches(run)
    micro = _median(run.get("micro_batches")) or 1.0
    wanted, source = (total, "the settings") if total else _declared_total(said, loader, micro)
    warm, warm_source = (warmup, "the settings") if warmup else _declared(said, "warmup_steps")
    pace = _pace(run)
    unused, unused_steps = _unused(run, wanted, warm)
    world = facts.number(run, "env.world_size") or 1.0
    factors = (
        ("micro-batches of a step", micro),
        ("processes", world),
        ("micro-batches of a step times processes", micro * world),
        ("steps of an epoch", (loader or 0.0) / micro),
    )
    stepped = (facts.number(run, "smoke.schedulers") or 0.0) > 0
    told, rate = _length(run, "horizon", pace), run.get("learning_rate")
    fitted = reaches_zero(rate) if told is None and rate is not None else None
    return Schedule(
        warmup=warm,
        warmup_source=warm_source,
        total=wanted,
        total_source=source,
        totals=_totals(said, wanted, loader, micro),
        may_end_early=source.startswith(EPOCHS)
        or fitted is not None
        or run.config.get("smoke.scheduler0.class") == "LambdaLR",
        own_warmup=_length(run, "warmup", pace),
        horizon=told if fitted is None else fitted,
        fitted=fitted is not None,
        stepped=stepped,
        unused=unused,
        unused_steps=unused_steps,
        factors=factors,
    )


def reaches_zero(rate: Series) -> float | None:
    """Return the step at which a rate that follows a line or half a cosine from its peak would reach 0.

    A decay by hand says its length in no other way. None where it follows neither, or has hardly begun; a decay to a
    floor is no cosine, and a longer line.
    """
    top = float(rate.value.max()) if len(rate) else 0.0
    if not top > 0.0:
        return None
    peak = int(np.flatnonzero(rate.value >= (1.0 - 1e-9) * top)[-1])
    share = rate.value[peak:] / top
    ended = np.flatnonzero(share <= EXACT)
    share = share[: int(ended[0])] if len(ended) else share
    step = (rate.step[peak : peak + len(share)] - rate.step[peak]).astype(np.float64)
    if len(share) < LEAST_DECAY or not (np.diff(share) < 0.0).all():
        return None
    for travelled in (1.0 - share, np.arccos(np.clip(2.0 * share - 1.0, -1.0, 1.0)) / np.pi):
        speed = float(travelled @ step / (step @ step))
        if travelled[-1] >= NEAR and float(np.max(np.abs(travelled - speed * step))) <= EXACT:
            return float(rate.step[peak]) + 1.0 / speed
    return None


def _declared(said: dict[str, dict[str, object]], what: str) -> tuple[float | None, str]:
    fact = said.get(what)
    value = fact.get("value") if fact is not None else None
    if fact is None or not isinstance(value, (int, float)) or value <= 0:
        return None, ""
    name, source = str(fact.get("name")), str(fact.get("source"))
    return float(value), f"--{name.replace('_', '-')}" if source == "arguments" else f"{name} of the {source}"


def _declared_total(said: dict[str, dict[str, object]], loader: float | None, micro: float) -> tuple[float | None, str]:
    steps, source = _declared(said, "total_steps")
    if steps is not None:
        return steps, source
    epochs, source = _declared(said, "epochs")
    return (None, "") if epochs is None or loader is None else (epochs * loader / micro, f"{EPOCHS} {source}")


def _totals(
    said: dict[str, dict[str, object]], total: float | None, loader: float | None, micro: float
) -> tuple[float, ...]:
    if total is None:
        return ()
    epochs, _ = _declared(said, "epochs")
    if epochs is None or loader is None or total != epochs * loader / micro:
        return (total,)
    return total, *(epochs * max(1.0, rounded(loader / micro)) for rounded in (floor, ceil))


def _loader_batches(run: Run) -> float | None:
    """Return the batches of an epoch, where one DataLoader is used for training."""
    loaders = [one for one in facts.table(run, "smoke.loaders") if one.get("training", True)]
    lengths = {float(n) for one in loaders if isinstance(n := one.get("batches"), (int, float)) and n > 0}
    return lengths.pop() if len(lengths) == 1 else None


def _pace(run: Run) -> float | None:
    """Return the scheduler's steps an optimizer step, None where it is not steady enough to tell."""
    steps = run.get("smoke/scheduler_steps")
    count = facts.number(run, "smoke.schedulers") or 0.0
    if steps is None or count != 1 or (facts.number(run, "smoke.optimizers") or 1.0) != 1:
        return None
    usual = float(np.median(steps.value))
    if usual >= 1.0:
        return usual
    stepped = steps.step[steps.value > 0]
    gaps = np.diff(stepped)
    if len(gaps) < 2 or np.ptp(gaps) > 1:
        return None
    return 1.0 / float(np.mean(gaps))


def _length(run: Run, name: str, pace: float | None) -> float | None:
    units = facts.number(run, f"smoke.scheduler0.{name}")
    return None if units is None or pace is None else units / pace


def _unused(run: Run, total: float | None, warmup: float | None) -> tuple[str | None, float]:
    """Return class and steps of a scheduler that should have stepped by now."""
    if facts.number(run, "smoke.schedulers") or total is None:
        return None, 0.0
    rate = run.get("learning_rate")
    is_over = rate is not None and len(rate) >= WHOLE * total and not np.ptp(rate.value)
    for one in facts.table(run, "smoke.schedulers_unused"):
        horizon = one.get("horizon")
        if isinstance(horizon, (int, float)) and any(
            abs((horizon + more) / total - 1.0) <= NEAR for more in (0.0, warmup or 0.0)
        ):
            return str(one.get("class")), float(horizon)
        if is_over and one.get("class") != ON_A_METRIC:
            return str(one.get("class")), 0.0
    return None, 0.0


def _median(series: Series | None) -> float | None:
    return None if series is None else float(np.median(series.value))
