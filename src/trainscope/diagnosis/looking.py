"""The story's own look around an incident: every quantity that left its usual range there, and where first.

Run-wide series, per-layer statistics and routing shares are all held against the run before the incident. Three
things are exact and need no range: a value that is not finite, a learning rate that leaps or climbs, and weights that
change by more than the optimizer's update. Gradients that a loss scale made overflow, in a step that was refused, are
none of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trainscope.core.loss_scale import overflowed_on_purpose
from trainscope.core.run import LayerTable, Run, Series
from trainscope.detectors.base import number
from trainscope.detectors.engine.rates import LEAP, are_deliberate
from trainscope.diagnosis.climb import climb
from trainscope.diagnosis.departures import BESIDE_BEYOND, BESIDE_SCORE, HISTORY, Departure, departures
from trainscope.diagnosis.signs import Sign, Stage
from trainscope.diagnosis.watched import LAYERS, LOAD, SERIES, Watched

STOPPED = "stopped being finite"
"""The event of a series or statistic that became NaN or infinite."""
ITSELF = "weight_l2_norm_by_itself"
"""Signal of weights that changed between two steps by more than the update between them."""
BAD_GRADIENT = "grad_nan_inf_ratio"
"""Signal of a gradient that holds NaN or infinity; the share itself is a number."""
SLACK = 1.05
"""Rounding of norms in single precision is far below."""
CALM, STEADY = 5, 1.25
"""Points before a leap of the learning rate at which it must not have risen by more than a quarter each: a warm-up."""
LAYERS_SHOWN = 3
"""Layers of one statistic that a story shows; it says how many others there were."""


def look(run: Run, first: int, last: int) -> list[Sign]:
    """Return what left its usual range in a window of steps, in no order.

    Parameters
    ----------
    run : Run
    first, last : int
        The window, both ends included.
    """
    meant = overflowed_on_purpose(run)
    signs = list(_series_signs(run, first, last, meant))
    if run.layers is not None:
        signs += _layer_signs(run.layers, first, last, meant)
    return signs + list(_load_signs(run, first, last))


def _series_signs(run: Run, first: int, last: int, meant: NDArray[np.integer]) -> Iterator[Sign]:
    for name, watched in SERIES.items():
        series = run.get(name)
        if series is None:
            continue
        bad = _non_finite(series, first, last, meant if watched.stage is Stage.GRADIENT else meant[:0])
        if bad is not None and watched.stage is not Stage.DATA:
            yield Sign(bad, watched.stage, name, STOPPED, end_step=bad)
        if name == "learning_rate":
            yield from list(_rate_leaps(series, first, last)) or _rate_climb(series, first, last)
            continue
        found = departures(series.step, series.value[None, :], watched.watch, first, last)[0]
        if found is not None:
            yield _sign(name, watched, found, None)


def batch_beside(run: Run, spike: Sign) -> Sign | None:
    """Return how the batch at whose step the loss spikes is unlike the others; None where nothing clearly is.

    One step is looked at and not a window of them, so that half of what makes a sign elsewhere is enough, as long as
    no batch before was nearly as odd.
    """
    found = []
    for name, watched in SERIES.items():
        series = run.get(name)
        if series is None or watched.stage is not Stage.DATA:
            continue
        watch = replace(watched.watch, score=BESIDE_SCORE, beyond=BESIDE_BEYOND)
        last = spike.step if spike.end_step is None else spike.end_step
        one = departures(series.step, series.value[None, :], watch, spike.step, last)[0]
        if one is not None and one.step == spike.step:
            found.append(_sign(name, watched, one, None))
    return max(found, key=lambda s: s.score, default=None)


def _non_finite(series: Series, first: int, last: int, meant: NDArray[np.integer]) -> int | None:
    bad = series.step[~np.isfinite(series.value) & (series.step >= first) & (series.step <= last)]
    bad = bad[~np.isin(bad, meant)]
    return int(bad[0]) if len(bad) else None


def _rate_leaps(rate: Series, first: int, last: int) -> Iterator[Sign]:
    """Yield the first leap upwards in the window, unless it is a restart of a cyclic schedule.

    Unlike the detector's, a leap out of a rate that never moved before counts: this is an incident, not a warm-up.
    """
    rate = rate.finite()
    if len(rate) < 4:
        return
    value = rate.value
    ratio = value[1:] / np.maximum(value[:-1], 1e-3 * float(np.abs(value).max()) + 1e-300)
    up = [int(i) for i in np.flatnonzero(ratio >= LEAP) if i >= CALM and ratio[i - CALM : i].max() < STEADY]
    if not up or are_deliberate(rate, up):
        return
    for i in up:
        step, before, after = int(rate.step[i + 1]), float(value[i]), float(value[i + 1])
        if first <= step <= last:
            back = np.flatnonzero(value[i + 1 :] < after / LEAP)
            end = int(rate.step[i + int(back[0])]) if len(back) else None
            yield Sign(step, Stage.SCHEDULE, rate.name, _moved(before, after), end_step=end)
            return


def _rate_climb(rate: Series, first: int, last: int) -> Iterator[Sign]:
    """Yield the climb of a learning rate that no single step shows."""
    found = climb(rate.finite(), first, last)
    if found is not None:
        moved = _moved(found.before, found.top)
        event = f"{moved} from step {found.step} to {found.end_step}, a little at every step"
        yield Sign(found.step, Stage.SCHEDULE, rate.name, event, end_step=found.end_step)


def _layer_signs(table: LayerTable, first: int, last: int, meant: NDArray[np.integer]) -> list[Sign]:
    """Return every layer whose statistics left their range."""
    known = set(table.metrics())
    wanted = [m for m in LAYERS if m in known]
    columns: dict[str, dict[str, Series]] = {metric: {} for metric in wanted}
    signs: list[Sign] = []
    for layer in table.layers():
        for metric in wanted:
            series = table.series(layer, metric)
            if len(series):
                columns[metric][layer] = series
        signs += _changed_by_itself(table, layer, first, last)
        signs += _bad_gradients(table, layer, first, last, meant)
    for metric, found in columns.items():
        signs += _of_statistic(metric, found, first, last)
    return signs


def _of_statistic(metric: str, found: dict[str, Series], first: int, last: int) -> Iterator[Sign]:
    watched = LAYERS[metric]
    for key, names in _same_steps(found).items():
        step = np.frombuffer(key, dtype=np.int64)
        values = np.stack([found[name].value for name in names])
        begin = max(0, int(np.searchsorted(step, first)) - HISTORY)
        end = int(np.searchsorted(step, last, side="right"))
        result = departures(step[begin:end], values[:, begin:end], watched.watch, first, last)
        for name, one in zip(names, result, strict=True):
            if one is not None:
                yield _sign(metric, watched, one, name)


def _same_steps(found: dict[str, Series]) -> dict[bytes, list[str]]:
    groups: dict[bytes, list[str]] = {}
    for name, series in found.items():
        groups.setdefault(series.step.tobytes(), []).append(name)
    return groups


def _changed_by_itself(table: LayerTable, layer: str, first: int, last: int) -> list[Sign]:
    """Return a sign where the weights of a layer changed by more than the update between two steps (exact)."""
    weight, update = table.series(layer, "weight_l2_norm"), table.series(layer, "update_l2_norm")
    step, a, b = np.intersect1d(weight.step, update.step, assume_unique=True, return_indices=True)
    if len(step) < 2:
        return []
    norm, size = weight.value[a], update.value[b]
    changed = np.abs(np.diff(norm))
    allowed = SLACK * size[:-1] + 1e-3 * norm[:-1]
    odd = (changed > allowed) & (np.diff(step) == 1) & (step[1:] >= first) & (step[1:] <= last)
    return [
        Sign(
            int(step[i + 1]),
            Stage.UPDATE,
            ITSELF,
            f"{_moved(float(norm[i]), float(norm[i + 1]))}, though the update before was only {number(float(size[i]))}",
            layer,
            int(step[i + 1]),
            float(changed[i] / max(allowed[i], 1e-300)),
        )
        for i in np.flatnonzero(odd)[:1]
    ]


def _bad_gradients(table: LayerTable, layer: str, first: int, last: int, meant: NDArray[np.integer]) -> list[Sign]:
    ratio = table.series(layer, BAD_GRADIENT)
    norm = table.series(layer, "grad_l2_norm")
    steps = [*ratio.step[ratio.value > 0], *norm.step[~np.isfinite(norm.value)]]
    steps = [int(s) for s in steps if first <= s <= last and s not in meant]
    return [
        *_bad_update(table, layer, first, min(steps, default=last + 1) - 1, meant),
        *(Sign(s, Stage.GRADIENT, BAD_GRADIENT, STOPPED, layer, s) for s in sorted(steps)[:1]),
    ]


def _bad_update(table: LayerTable, layer: str, first: int, last: int, meant: NDArray[np.integer]) -> Iterator[Sign]:
    """Yield a sign where weights left the finite numbers before the layer's gradient did: the exact place."""
    norm = table.series(layer, "weight_l2_norm")
    nothing = norm.step[norm.value == 0.0]  # a ratio to it is no number, and old recordings say NaN
    for metric in ("update_ratio", "weight_l2_norm"):
        bad = _non_finite(table.series(layer, metric), first, last, np.union1d(meant, nothing))
        if bad is not None:
            yield Sign(bad, Stage.UPDATE, metric, STOPPED, layer, bad)
            return


def _load_signs(run: Run, first: int, last: int) -> Iterator[Sign]:
    if run.shares is None:
        return
    for block in run.shares.blocks():
        step, shares = run.shares.shares(block)
        if len(step) and shares.shape[1] > 1:
            found = departures(step, shares.max(axis=1)[None, :], LOAD.watch, first, last)[0]
            if found is not None:
                yield _sign("shares", LOAD, found, block)


def _sign(signal: str, watched: Watched, found: Departure, where: str | None) -> Sign:
    return Sign(
        found.step,
        watched.stage,
        signal,
        _moved(found.usual, found.value),
        where,
        found.end_step,
        round(found.score, 1),
    )


def _moved(before: float, after: float) -> str:
    """Return what a value did, as a clause."""
    if not np.isfinite(after):
        return f"went from {number(before)} to {number(after)}"
    up = after > before
    verb = "rose" if up else "fell"
    ratio = after / before if before > 0 and after > 0 else 0.0
    times = ratio if up else (1.0 / ratio if ratio else 0.0)
    fold = f" {number(float(f'{times:.3g}'))}-fold" if times >= 1.5 else ""
    return f"{verb}{fold} from {number(before)} to {number(after)}"
