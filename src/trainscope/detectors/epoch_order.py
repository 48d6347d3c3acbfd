"""epoch_order: the loss goes through the same ups and downs in every epoch: the batches come in one order.

What it finds
    A pattern of the training loss within an epoch that comes again in each: a loader that does not shuffle, or that
    shuffles once. It swings with the order of the data, and the model follows the last shard.
Algorithm
    The epochs are those of the log's own counter; the first quarter of them, in which the loss still bends, is left
    out, and of more than 40 the others are thinned. Each is cut into the same bins, its parabola is taken out (an epoch
    that begins with a step down and one that falls steadily leave nothing), and the mean correlation of all pairs of
    epochs is compared with that of the same epochs shifted round by random amounts, 999 times: no law of the noise is
    assumed. It counts when none of them reaches it and it lies `sigmas` standard deviations above them.
Parameters
    sigmas: standard deviations above the correlation of shifted epochs.
    amplitude: smallest swing that is a warning, as a standard deviation and a fraction of the level; less is an
        information.
False positives
    An order that is meant: a curriculum within the epoch, a language model that reads documents in sequence. A learning
    rate that cycles once an epoch is looked for, and excuses it. In 4,680 healthy synthetic logs with an epoch
    counter, four kinds of noise with autocorrelations of 0 to 0.9, none lay above 6.4 standard deviations; of 15
    trainings of a small model 5 of 5 in sequence, 5 of 5 in one random order and 0 of 5 shuffled ones were told.
Misses
    Fewer than 4 epochs after the first quarter, fewer than 16 logged points an epoch, epochs of uneven length, and a
    log without an epoch counter; a large periodic swing is then an `oscillation`.
Reference
    R. A. Fisher, "The Design of Experiments", 1935 (tests by permutation). minimind PR 503 and insightface#377: data in
    order made the loss swing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run, Series
from trainscope.detectors.base import Detector, Skipped, number, several_objectives
from trainscope.detectors.engine.epochs import Epochs, epochs

FloatArray = NDArray[np.float64]

POINTS = 16
"""Logged points an epoch below which no pattern shows."""
BINS = 48
"""Most bins of an epoch."""
EPOCHS = 4
MOST_EPOCHS = 40
SHIFTS = 999
CYCLE = 0.05
"""Swing of the learning rate within an epoch, as a fraction of it, that explains one of the loss."""
AGREE = 0.9
"""Share of the epochs that have it, and how much its places in them are one (the mean resultant length)."""


@dataclass(frozen=True, slots=True)
class Params:
    """How sure, and how large."""

    sigmas: float = 8.0
    """Beside a p-value under 1 in 1,000: one test a run is not rare enough for many runs."""
    amplitude: float = 0.03
    """Below it the order costs little."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return a finding where the epochs have one pattern."""
    cut = epochs(run, POINTS)
    if isinstance(cut, str):
        return Skipped(cut)
    if several_objectives(run):
        return Skipped("the sum of what several optimizers follow has no order")
    skip = cut.count // 4
    if cut.count - skip < EPOCHS:
        return Skipped(f"needs {EPOCHS} whole epochs after the first quarter")
    rate = run.get("learning_rate")
    if rate is not None and _cycles(rate, cut, skip):
        return []
    chosen = np.unique(np.linspace(skip, cut.count - 1, min(MOST_EPOCHS, cut.count - skip)).astype(np.intp))
    table = _profiles(cut, chosen)
    level = abs(float(np.median(np.concatenate([cut.loss.value[cut.part(i)] for i in chosen]))))
    found = _agreement(table)
    if found is None or found[2] < params.sigmas or level == 0.0:
        return []
    return [_finding(cut, skip, table, found, level, params)]


def _profiles(cut: Epochs, chosen: NDArray[np.intp]) -> FloatArray:
    """Return (epochs, bins) of the loss within each epoch, its parabola taken out."""
    fewest = min(len(cut.part(i)) for i in chosen)
    bins = min(BINS, fewest // 2)
    rows = []
    for i in chosen:
        at = cut.part(i)
        place = (cut.loss.step[at] - cut.starts[i]) / (cut.starts[i + 1] - cut.starts[i])
        which = np.minimum((place * bins).astype(np.intp), bins - 1)
        value = cut.loss.value[at]
        value = value - np.polyval(np.polyfit(place, value, 2), place)
        count = np.bincount(which, minlength=bins)
        rows.append(np.bincount(which, value, minlength=bins) / np.maximum(count, 1))
    return np.array(rows)


def _agreement(table: FloatArray) -> tuple[float, float, float] | None:
    """Return (mean correlation of two epochs, p-value, standard deviations above shifted epochs)."""
    norm = np.sqrt((table**2).sum(axis=1))
    if not (norm > 0.0).all():
        return None
    unit = table / norm[:, None]
    unit = unit - unit.mean(axis=1, keepdims=True)
    rng = np.random.default_rng(0)  # the same shifts for everyone: the same log says the same
    bins = unit.shape[1]
    shift = rng.integers(0, bins, (SHIFTS, len(unit)))
    at = (np.arange(bins)[None, None, :] + shift[:, :, None]) % bins
    shifted = np.take_along_axis(np.broadcast_to(unit, (SHIFTS, *unit.shape)), at, axis=2)
    chance = _mean_product(shifted)
    own = float(_mean_product(unit[None])[0])
    spread = float(chance.std())
    if spread == 0.0:
        return None
    p_value = float(1 + np.count_nonzero(chance >= own)) / (SHIFTS + 1)
    return own, p_value, (own - float(chance.mean())) / spread


def _mean_product(unit: FloatArray) -> FloatArray:
    """Return the mean inner product of two different rows of each table, from that of their sum."""
    k = unit.shape[1]
    whole, each = (unit.sum(axis=1) ** 2).sum(axis=1), (unit**2).sum(axis=(1, 2))
    return np.asarray((whole - each) / (k * (k - 1)))


def _cycles(rate: Series, cut: Epochs, skip: int) -> bool:
    """Tell whether the learning rate goes up at one place of most epochs."""
    places = []
    for i in range(skip, cut.count):
        inside = (rate.step >= cut.starts[i]) & (rate.step < cut.starts[i + 1])
        value, step = rate.value[inside], rate.step[inside]
        if len(value) < 3 or not np.isfinite(value).all() or value.max() <= 0.0:
            return False
        rise = value - np.minimum.accumulate(value)
        if rise.max() >= CYCLE * value.max():
            length = cut.starts[i + 1] - cut.starts[i]
            places.append((step[int(np.argmax(rise))] - cut.starts[i]) / length)
    if len(places) < AGREE * (cut.count - skip):
        return False
    return float(np.abs(np.exp(2j * np.pi * np.array(places)).mean())) >= AGREE


def _finding(
    cut: Epochs, skip: int, table: FloatArray, found: tuple[float, float, float], level: float, params: Params
) -> Finding:
    own, p_value, sigmas = found
    pattern = table.mean(axis=0)
    share = float(pattern.std()) / level
    start, end = int(cut.starts[skip]), int(cut.loss.step[cut.part(cut.count - 1)[-1]])
    worst = (int(np.argmax(pattern)) + 0.5) / len(pattern)
    grave = share >= params.amplitude
    length = float(np.median(np.diff(cut.starts)))
    mild = "" if grave else "; it is small, and harmless if the order is meant"
    return Finding(
        detector="epoch_order",
        severity=Severity.WARNING if grave else Severity.INFO,
        title="Same order in every epoch",
        message=(
            f"{cut.loss.name} goes through the same ±{share:.1%} in each of {len(table)} epochs of {number(length)} "
            f"steps, highest at {worst:.0%} of the epoch: the batches come in the same order each time{mild}."
        ),
        metric=cut.loss.name,
        start_step=start,
        end_step=end,
        peak_step=int(cut.starts[skip] + worst * length),
        evidence={"amplitude": share, "correlation": own, "p_value": p_value, "score": sigmas, "period_steps": length},
        fixes=(
            "Shuffle, with another seed each epoch: sampler.set_epoch(epoch) where the sampler is distributed.",
            "A large shuffle buffer where the data is streamed; or shuffle the shards too.",
        ),
    )


DETECTOR = Detector("epoch_order", "Same order in every epoch", ("epoch", "train/loss"), Params(), detect)
