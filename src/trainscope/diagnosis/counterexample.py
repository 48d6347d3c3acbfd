"""The stable run that is most like the broken ones, and what the two do differently.

Algorithm
    The distance of two configurations is Gower's (1971): the mean over all settings that differ between any runs
    of 0 or 1 for words and switches, and of the difference over the range for numbers (of the logarithms where a
    setting is positive and spans a factor of ten). Of all members and all stable runs that trained past the
    onset, the pair at the least distance is taken; of equals, the one whose losses before the onset are nearest.
    Each setting that differs between the two is then judged by all runs: Fisher's exact test of the members
    against the stable runs on the member's side of it. A setting that all other runs contradict ranks last.
Limits
    Nothing here is an experiment: to be sure, train the broken run again with the first setting changed.
Reference
    J. C. Gower, A General Coefficient of Similarity and Some of Its Properties, Biometrics 27(4), 1971.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trainscope.core.run import FloatArray, Run, Scalar
from trainscope.diagnosis import fisher
from trainscope.diagnosis.case import Case
from trainscope.diagnosis.traits import is_number, plain_text, settings_of

MOST = 12
"""Differing settings that are reported."""
LOG_SPAN = 10.0
"""A positive setting whose values span this factor is compared by its logarithm."""

Config = Mapping[str, Scalar]


@dataclass(frozen=True, slots=True)
class Difference:
    """One setting that two runs do not share."""

    key: str
    member: Scalar
    stable: Scalar
    members_alike: tuple[int, int]
    """How many members are on the member's side of it, of how many that say."""
    stable_alike: tuple[int, int]
    """How many stable runs are on the member's side, of how many that say."""
    p_value: float
    """Fisher's exact test, one-sided; near 1 where the other runs contradict it."""


@dataclass(frozen=True, slots=True, eq=False)
class Counterexample:
    """A broken run and the stable run nearest to it."""

    member: Case | None = None
    stable: Case | None = None
    distance: float | None = None
    """Gower's, 0 to 1; None where configurations say nothing."""
    differences: tuple[Difference, ...] = ()
    """Most telling first."""
    more: int = 0
    """Differing settings that were left out."""
    reason: str = ""
    """Why there is no counterexample, or what to know about this one."""


def nearest_stable(members: Sequence[Case], stable: Sequence[Case]) -> Counterexample:
    """Return the counterexample of a cluster."""
    if not stable:
        return Counterexample(reason="no stable run to compare with")
    onsets = [case.onset for case in members if case.onset is not None]
    onset = int(np.median(onsets)) if onsets else None
    long = [case for case in stable if onset is None or (case.run.last_step or 0) >= onset]
    if not long:
        return Counterexample(reason=f"no stable run trained as far as step {onset}, where these broke")
    apart = _gower([settings_of(c.run) for c in members], [settings_of(c.run) for c in long])
    known = bool(np.isfinite(apart).any())
    nearest = np.argwhere(apart == np.nanmin(apart)) if known else np.argwhere(np.ones_like(apart))
    member, other = min(
        ((members[i], long[j]) for i, j in nearest), key=lambda pair: _curve(pair[0].run, pair[1].run, pair[0].onset)
    )
    if not known:
        why = "no two of these runs have settings to compare; the nearest by the loss before the onset"
        return Counterexample(member, other, None, reason=why)
    distance = float(np.nanmin(apart))
    found = _differences(member, other, members, stable)
    why = "" if found else "the configurations are the same: what differs is not in them (data, seed, code, machine)"
    return Counterexample(member, other, distance, tuple(found[:MOST]), max(len(found) - MOST, 0), why)


def _gower(mine: Sequence[Config], theirs: Sequence[Config]) -> FloatArray:
    """Return the distance of each of `mine` to each of `theirs`, (m, n); NaN where either has no settings."""
    configs = [*mine, *theirs]
    total, compared = np.zeros((len(mine), len(theirs))), 0
    for key in dict.fromkeys(key for config in configs for key in config):
        place = _placed([config.get(key) for config in configs])
        known = np.array([bool(config) for config in configs])
        if len(np.unique(place[known])) < 2:
            continue
        x, y = place[: len(mine), None], place[None, len(mine) :]
        # Words, switches and what is missing stand at whole numbers from 2 on: any two of them are 1 apart.
        total += np.where((x <= 1) & (y <= 1), np.abs(x - y), (x != y).astype(np.float64))
        compared += 1
    total /= max(compared, 1)
    total[[not config for config in mine], :] = np.nan
    total[:, [not config for config in theirs]] = np.nan
    return total


def _placed(values: Sequence[Scalar]) -> FloatArray:
    """Return a number for each value of one setting: numbers from 0 to 1, what is missing 2, words from 3 on."""
    numbers = [float(v) for v in values if is_number(v)]
    if numbers and len(numbers) == sum(v is not None for v in values):
        low, high = min(numbers), max(numbers)
        log = low > 0 and high >= LOG_SPAN * low
        scale = math.log(high) - math.log(low) if log else (high - low) or 1.0
        return np.array(
            [2.0 if not is_number(v) else (math.log(v) - math.log(low) if log else v - low) / scale for v in values]
        )
    codes = {text: 3.0 + n for n, text in enumerate(dict.fromkeys(plain_text(v) for v in values if v is not None))}
    return np.array([2.0 if v is None else codes[plain_text(v)] for v in values])


def _same(x: Scalar, y: Scalar) -> bool:
    return (x is None) == (y is None) and (x is None or plain_text(x) == plain_text(y))


def _curve(a: Run, b: Run, onset: int | None) -> float:
    """Return the root mean square difference of two losses before the onset; infinite where they share no step."""
    mine, theirs = a.get("train/loss"), b.get("train/loss")
    if mine is None or theirs is None:
        return math.inf
    _, i, j = np.intersect1d(mine.step, theirs.step, assume_unique=True, return_indices=True)
    x, y = mine.value[i], theirs.value[j]
    keep = np.isfinite(x) & np.isfinite(y) & (mine.step[i] < (onset if onset is not None else math.inf))
    return float(np.sqrt(np.mean((x[keep] - y[keep]) ** 2))) if keep.any() else math.inf


def _differences(member: Case, other: Case, members: Sequence[Case], stable: Sequence[Case]) -> list[Difference]:
    a, b = settings_of(member.run), settings_of(other.run)
    broken, fine = ([settings_of(case.run) for case in cases] for cases in (members, stable))
    found = []
    for key in dict.fromkeys((*a, *b)):
        x, y = a.get(key), b.get(key)
        if _same(x, y):
            continue
        mine = _on_side(key, x, y, broken)
        theirs = _on_side(key, x, y, fine)
        p = fisher.at_least(mine[0], mine[1], theirs[0], theirs[1])
        found.append(Difference(key, x, y, mine, theirs, p))
    return sorted(found, key=lambda d: (d.p_value, d.key))


def _on_side(key: str, x: Scalar, y: Scalar, configs: Sequence[Config]) -> tuple[int, int]:
    """Return how many configurations are on the side of `x` rather than of `y`, and how many on either."""
    values = [config.get(key) for config in configs if config]
    if is_number(x) and is_number(y):
        middle = math.sqrt(x) * math.sqrt(y) if x > 0 and y > 0 else (x + y) / 2
        numbers = [v for v in values if is_number(v)]
        return sum((v > middle) == (x > middle) for v in numbers), len(numbers)
    sides = [_same(v, x) for v in values if _same(v, x) or _same(v, y)]
    return sum(sides), len(sides)
