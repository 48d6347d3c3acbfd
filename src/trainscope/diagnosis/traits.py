"""Which settings the broken runs share and the stable ones lack.

Algorithm
    Each setting offers traits: ``key = value`` for words and switches, ``key at least v`` and ``key at most v``
    for numbers, at every cut between two values that occur. A trait splits the runs that have a configuration;
    traits that split them alike are one trait with several names. Each split is judged by Fisher's exact test,
    one-sided (more frequent among the members), and the p-value is multiplied by the number of distinct
    splits that were tried (Bonferroni): the search over cuts is paid for.
Limits
    Correlation, not cause. What is told apart by a run's name, seed or path is no trait of its training; outcomes
    (the final loss) are none either. With few runs no trait can be told from chance: ``Traits.reason`` says so.
Reference
    R. A. Fisher, Statistical Methods for Research Workers, 5th edition, 1934, section 21.02.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np

from trainscope.core.metrics import tokens
from trainscope.core.run import Run, Scalar
from trainscope.diagnosis import fisher

LEVEL = 0.05
"""A trait with a corrected p-value above this is not told from chance."""
LARGEST = 1e150
MOST = 8
"""Traits that are reported."""
MOST_ALSO = 6
"""Other settings that split the runs alike, named beside a trait."""
_OUTCOMES = frozenset({"best_metric", "best_model_checkpoint", "total_flos", "num_input_tokens_seen", "global_step"})
_FACTS = ("summary.", "env.", "smoke.")
_LABELS = frozenset({"seed", "name", "id", "dir", "path", "file", "tags", "notes", "group", "host", "hostname", "user"})
"""A key with one of these words labels a run or its random numbers."""


@dataclass(frozen=True, slots=True)
class Trait:
    """One setting that the members have more often than the stable runs."""

    key: str
    relation: str
    """``=``, ``≥`` or ``≤``."""
    value: Scalar
    members: int
    """How many of the members have it."""
    stable: int
    """How many of the stable runs have it."""
    p_value: float
    """Fisher's exact test, one-sided, uncorrected."""
    corrected: float
    """The same times the number of distinct splits tried, at most 1."""
    also: tuple[str, ...] = ()
    """Other settings that split the runs in the very same way."""


@dataclass(frozen=True, slots=True)
class Traits:
    """What was found, out of how much."""

    members: int
    """Members with a configuration."""
    stable: int
    """Stable runs with one."""
    tried: int = 0
    """Distinct splits that were judged."""
    traits: tuple[Trait, ...] = ()
    """Those that chance does not explain, most telling first."""
    reason: str = ""
    """Why there is none."""


def settings_of(run: Run) -> dict[str, Scalar]:
    """Return the settings of a run that could explain how it went: neither outcomes, labels nor environment."""
    return {key: value for key, value in run.config.items() if _explains(key)}


def _explains(key: str) -> bool:
    if key.startswith(_FACTS) or key in _OUTCOMES:
        return False
    words = tokens(key)
    return not any(word in _LABELS for word in words)


def compare(members: Sequence[Run], stable: Sequence[Run]) -> Traits:
    """Return the traits of the members against the stable runs; runs without a configuration are left out."""
    mine = [found for run in members if (found := settings_of(run))]
    theirs = [found for run in stable if (found := settings_of(run))]
    if not mine or not theirs:
        return Traits(len(mine), len(theirs), reason=_nothing(len(members), len(stable), len(mine), len(theirs)))
    splits = _splits([*mine, *theirs])
    counts = Traits(len(mine), len(theirs), len(splits))
    if not splits:
        return _with(counts, reason="all runs have the same settings")
    traits = sorted((_trait(split, names, len(mine), len(splits)) for split, names in splits.items()), key=_rank)
    kept = tuple(t for t in traits if t.corrected <= LEVEL)[:MOST]
    if kept:
        return _with(counts, traits=kept)
    bound = fisher.least(len(mine), len(theirs))
    if min(bound * len(splits), 1.0) > LEVEL:
        few = f"too few runs: {len(mine)} against {len(theirs)} stable"
        again = f" among {len(splits)} different splits" if len(splits) > 1 else ""
        return _with(counts, reason=f"{few} cannot tell a trait{again} from chance (least p {bound:.2g})")
    best = traits[0]
    return _with(counts, reason=f"no trait stands out: the best of {len(splits)} has p {best.p_value:.2g}")


def _with(counts: Traits, *, traits: tuple[Trait, ...] = (), reason: str = "") -> Traits:
    return Traits(counts.members, counts.stable, counts.tried, traits, reason)


def _nothing(members: int, stable: int, mine: int, theirs: int) -> str:
    if not stable:
        return "no stable run to compare with"
    if not mine and not theirs:
        return "none of these runs has a configuration"
    bare, of = ("members", members) if not mine else ("stable runs", stable)
    return f"none of the {of} {bare} has a configuration"


Split = bytes
"""One byte a run: 1 where it has the trait."""
Name = tuple[str, str, Scalar]
"""Key, relation, value."""


def _splits(configs: Sequence[dict[str, Scalar]]) -> dict[Split, list[Name]]:
    """Return every way in which one setting splits the runs, with the traits that split them so."""
    found: dict[Split, list[Name]] = {}
    for key in dict.fromkeys(key for config in configs for key in config):
        for name, split in _of_key(key, [config.get(key) for config in configs]):
            if 0 < sum(split) < len(split):
                found.setdefault(split, []).append(name)
    return found


def _of_key(key: str, values: Sequence[Scalar]) -> Iterator[tuple[Name, Split]]:
    given = [v for v in values if v is not None]
    if all(map(is_number, given)):
        # NaN, for a run that lacks the setting, is neither above nor below.
        array = np.array([float(v) if is_number(v) else np.nan for v in values])
        cuts = np.unique(array[~np.isnan(array)])
        for cut in cuts[1:]:
            yield (key, "≥", _tidy(float(cut))), (array >= cut).tobytes()
        for cut in cuts[:-1]:
            yield (key, "≤", _tidy(float(cut))), (array <= cut).tobytes()
        if len(cuts) == 1:
            yield (key, "=", _tidy(float(cuts[0]))), (array == cuts[0]).tobytes()
        return
    plain = [None if v is None else plain_text(v) for v in values]
    for value in dict.fromkeys(v for v in plain if v is not None):
        yield (key, "=", value), bytes(v == value for v in plain)


def is_number(value: object) -> TypeGuard[int | float]:
    """Tell whether a setting is a number to reckon with: finite, of a size that has a square, and not a switch."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -LARGEST <= value <= LARGEST


def plain_text(value: Scalar) -> str:
    """Return a setting as text, ``true`` for a switch that is on."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _tidy(value: float) -> int | float:
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _trait(split: Split, names: Sequence[Name], members: int, tried: int) -> Trait:
    having, others = sum(split[:members]), sum(split[members:])
    p = fisher.at_least(having, members, others, len(split) - members)
    key, relation, value = names[0]
    also = tuple(dict.fromkeys(name[0] for name in names[1:] if name[0] != key))[:MOST_ALSO]
    return Trait(key, relation, value, having, others, p, min(p * tried, 1.0), also)


def _rank(trait: Trait) -> tuple[float, str, str]:
    return trait.p_value, trait.key, trait.relation
