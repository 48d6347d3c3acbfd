"""Measure our detectors and the shipped rules on the same curves; finished pieces are kept in a cache."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from alarms import APART, DELAYS, QUIET, WARM_UP, events, levels, peaks
from numpy.typing import NDArray
from ours import LOOK, found, live_alarms, spans, warnings
from rules import RULES
from truth import (
    FAMILIES,
    FAULTS,
    ONSETS,
    PLANTED_IN,
    SIGMAS,
    SIZES,
    STEPS,
    family,
    healthy_loss,
    planted_loss,
)

FloatArray = NDArray[np.float64]
ANALYZE, LIVE = "trainscope, log so far", "trainscope, live"


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured."""

    seed: int
    healthy: int
    """Healthy runs of each kind of noise."""
    planted: int
    """Runs with a fault, of each kind, size and noise."""


class Cache:
    """One JSON line a finished piece; a second start goes on where the first one stopped."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        self._known: dict[str, Any] = dict(json.loads(line) for line in lines)

    def __contains__(self, key: str) -> bool:
        return key in self._known

    def get(self, key: str) -> Any:
        """Return what was put under `key`."""
        return self._known[key]

    def put(self, key: str, value: Any) -> None:
        """Keep `value`, which JSON can hold, here and in the file."""
        self._known[key] = value
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps([key, value]) + "\n")


def healthy_pieces(size: Size, cache: Cache) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield for each kind of noise what every rule and we say of its healthy runs."""
    for number, f in enumerate(FAMILIES):
        key = f"healthy {size.seed} {size.healthy} {f.name}"
        if key not in cache:
            rngs = [np.random.default_rng([size.seed, 1, number, i]) for i in range(size.healthy)]
            drawn = [healthy_loss(rng, f, SIGMAS[i % len(SIGMAS)]) for i, rng in enumerate(rngs)]
            cache.put(key, _healthy(np.stack(drawn)))
        yield f.name, cache.get(key)


def _healthy(losses: FloatArray) -> dict[str, Any]:
    said: dict[str, Any] = {"steps": int(losses.shape[0] * (STEPS - WARM_UP)), "peaks": {}}
    for rule in RULES:
        said["peaks"][rule.name] = [peaks(row[WARM_UP:]) for row in rule.score(losses)]
    analyzed, detectors, flagged = 0, {}, 0
    for loss in losses:
        looks = [warnings(loss[:end]) for end in range(WARM_UP, STEPS + 1, LOOK)]
        seen = events(span for look in looks for span in spans(look))
        analyzed += len(seen)
        for name in {f.detector for look in looks for f in look}:
            own = events(span for look in looks for span in spans([f for f in look if f.detector == name]))
            detectors[name] = detectors.get(name, 0) + len(own)
        flagged += bool(looks[-1])
    live = [events((i, i) for i in live_alarms(loss) if i >= WARM_UP) for loss in losses]
    return said | {
        "ours": {ANALYZE: analyzed, LIVE: sum(map(len, live))},
        "detectors": detectors,
        "flagged": flagged,
        "runs": len(losses),
    }


def calibration_pieces(seed: int, runs: int, cache: Cache) -> Iterator[tuple[str, list[dict[str, list[float]]]]]:
    """Yield for each noise that faults are planted in the peaks of every rule in healthy runs of its own, by run.

    Only the rules judge these, which is cheap, so that there are enough of them to know a rate of 0.1 in 10,000 steps.
    """
    for number, f in enumerate(map(family, PLANTED_IN)):
        key = f"calibration {seed} {runs} {f.name}"
        if key not in cache:
            rngs = [np.random.default_rng([seed, 5, number, i]) for i in range(runs)]
            losses = np.stack([healthy_loss(rng, f, SIGMAS[i % len(SIGMAS)]) for i, rng in enumerate(rngs)])
            scores = {rule.name: rule.score(losses) for rule in RULES}
            cache.put(key, [{n: peaks(row[i][WARM_UP:], most=6) for n, row in scores.items()} for i in range(runs)])
        yield f.name, cache.get(key)


def planted_pieces(size: Size, cache: Cache) -> Iterator[tuple[str, str, float, dict[str, Any]]]:
    """Yield for each noise, fault and size what every rule and we say of its runs."""
    for f in map(family, PLANTED_IN):
        for fault in FAULTS:
            for sigmas in SIZES:
                key = f"planted {size.seed} {size.planted} {f.name} {fault} {sigmas}"
                if key not in cache:
                    seed = [size.seed, 2, PLANTED_IN.index(f.name), FAULTS.index(fault), SIZES.index(sigmas)]
                    rngs = [np.random.default_rng([*seed, i]) for i in range(size.planted)]
                    drawn = [planted_loss(rng, f, SIGMAS[i % len(SIGMAS)], fault, sigmas) for i, rng in enumerate(rngs)]
                    cache.put(key, _planted([x for x, _ in drawn], [k for _, k in drawn]))
                yield f.name, fault, sigmas, cache.get(key)


def _planted(losses: list[FloatArray], onsets: list[int]) -> dict[str, Any]:
    together = np.stack(losses)[:, : ONSETS[1] + DELAYS[-1]]
    said: dict[str, Any] = {"levels": {}, ANALYZE: [], LIVE: [], "onset_error": []}
    for rule in RULES:
        rows = rule.score(together)
        said["levels"][rule.name] = [levels(row, onset) for row, onset in zip(rows, onsets, strict=True)]
    for loss, onset in zip(losses, onsets, strict=True):
        delay, error = _watched(loss, onset)
        said[ANALYZE].append(delay)
        said["onset_error"].append(error)
        said[LIVE].append(_live(loss, onset))
    return said


def _watched(loss: FloatArray, onset: int) -> tuple[float | None, int | None]:
    """Return by which of ``DELAYS`` a log that ends there is flagged, and how far off the named first step is.

    -1 is never; None is a log that had an alarm in the quiet time before the onset.
    """
    before = spans(warnings(loss[:onset]))
    if any(end >= onset - QUIET for _, end in before):
        return None, None

    def seen(delay: int) -> bool:
        return found(warnings(loss[: onset + delay]), onset, APART) is not None

    coarse = next((d for d in (10, 50, 100) if seen(d)), None)
    if coarse is None:
        return -1.0, None
    finer = {10: (1, 5), 50: (20,), 100: ()}[coarse]
    delay = next((d for d in finer if seen(d)), coarse)
    named = found(warnings(loss[: onset + 100]), onset, APART)
    return float(delay), None if named is None else int(named.start_step or 0) - onset


def _live(loss: FloatArray, onset: int) -> float | None:
    alarms = live_alarms(loss[: onset + DELAYS[-1]])
    if any(onset - QUIET <= i < onset for i in alarms):
        return None
    first = next((i for i in alarms if i >= onset), None)
    return -1.0 if first is None else float(next(d for d in DELAYS if first - onset < d))


def delays(values: list[float | None]) -> list[float]:
    """Return the delays of the runs that count, inf for those never found."""
    return [math.inf if v < 0 else v for v in values if v is not None]
