"""Reads the facts that a smoke run records beside its series, whatever run they are asked of.

A run that was not recorded by a smoke run has none, and every function here says so by returning None, an empty
tuple or False. Names and meanings of the facts: :mod:`trainscope.smoke.record`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainscope.core.run import Run, Scalar, Series

BATCH = ("smoke/target_hash", "smoke/batch_hash", "smoke/input_hash", "smoke/data_order_hash")
"""Identities of a step's data; one that agrees is enough: rounding moves inputs, a rewritten loader its own hash."""
MOST = 2**53 - 1
"""Largest number of anything that is counted: the largest that a float has exactly."""
RANDOM = ("smoke/rng_hash",)
PROVENANCE = {
    "seed": "smoke.seed",
    "platform": "env.platform",
    "processor": "env.processor",
    "cpu_capability": "env.cpu_capability",
    "dtype": "env.dtype",
    "torch": "env.torch",
    "device": "env.device",
    "world_size": "env.world_size",
    "threads": "env.threads",
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter tensor of a smoke run."""

    name: str
    shape: tuple[int, ...]
    initial: int | None
    """CRC-32 of its first bytes."""
    role: str
    """``trained``, ``frozen`` or ``left out`` (no optimizer has it)."""

    @property
    def numel(self) -> int:
        """How many numbers it holds."""
        return int(np.prod(self.shape, dtype=np.int64)) if self.shape else 1


def is_smoke(run: Run) -> bool:
    """Tell whether the run was recorded by a smoke run."""
    return "smoke.steps" in run.config


def provenance(run: Run, key: str) -> Scalar:
    """Return one of :data:`PROVENANCE`, None where the run does not say."""
    return run.config.get(PROVENANCE[key])


def names(run: Run, key: str) -> tuple[str, ...]:
    """Return a fact that is a list of names, empty where it is absent."""
    return tuple(str(item) for item in _json(run, key, list))


def values(run: Run, key: str) -> tuple[float, ...]:
    """Return a fact that is a list of numbers, empty where it is absent."""
    return tuple(float(item) for item in _json(run, key, list) if isinstance(item, (int, float)))


def table(run: Run, key: str) -> tuple[dict[str, Any], ...]:
    """Return a fact that is a list of objects, empty where it is absent."""
    return tuple(item for item in _json(run, key, list) if isinstance(item, dict))


def pairs(run: Run, key: str) -> tuple[tuple[int, int], ...]:
    """Return a fact that is a list of pairs of whole numbers, empty where it is absent."""
    found = [item for item in _json(run, key, list) if isinstance(item, list) and len(item) == 2]
    return tuple((int(one), int(other)) for one, other in found)


def mapping(run: Run, key: str) -> dict[str, Any]:
    """Return a fact that is one object, empty where it is absent."""
    return next(iter(_json(run, key, dict)), {})


def number(run: Run, key: str) -> float | None:
    """Return a fact that is a number, None where it is absent."""
    value = run.config.get(key)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def count(run: Run, key: str) -> int | None:
    """Return a whole number from 0 on, None where there is none."""
    value = number(run, key)
    return int(value) if value is not None and 0 <= value <= MOST else None


def parameters(run: Run) -> tuple[Parameter, ...]:
    """Return the parameters in model order, empty where they are not recorded."""
    found = []
    for item in _json(run, "smoke.parameters", list):
        if isinstance(item, list) and len(item) == 4 and isinstance(item[1], list):
            name, shape, initial, role = item
            found.append(
                Parameter(str(name), tuple(int(n) for n in shape), None if initial is None else int(initial), str(role))
            )
    return tuple(found)


def at_rest(run: Run) -> frozenset[str]:
    """Return the names of the parameters that no step moved, for whatever reason."""
    keys = ("smoke.frozen", "smoke.not_in_optimizer", "smoke.never_gradient", "smoke.never_moved")
    return frozenset(name for key in keys for name in names(run, key))


def knows(run: Run, series: Sequence[str]) -> bool:
    """Tell whether the run has any of these series."""
    return any(run.get(name) is not None for name in series)


def first_difference(run: Run, base: Run, series: Sequence[str]) -> int | None:
    """Return the first step at which every identity that both runs have is another.

    Parameters
    ----------
    series : sequence of str
        Names of hashes that stand for the same thing; a step agrees if any of them does.
    """
    agrees: dict[int, bool] = {}
    for name in series:
        mine, theirs = run.get(name), base.get(name)
        if mine is None or theirs is None:
            continue
        step, a, b = np.intersect1d(mine.step, theirs.step, assume_unique=True, return_indices=True)
        for at, same in zip(step.tolist(), (mine.value[a] == theirs.value[b]).tolist(), strict=True):
            agrees[at] = agrees.get(at, False) or same
    return min((at for at, same in agrees.items() if not same), default=None)


def masks_differ(run: Run, base: Run) -> bool | None:
    """Tell whether the first steps drew other dropout masks; None where that is not known.

    The same masks on inputs that are laid out otherwise (padded on the other side) hit other numbers.
    """
    mine, theirs = (one.config.get("smoke.first_step_masks") for one in (run, base))
    if mine is None or theirs is None:
        return None
    inputs = [one.get("smoke/input_hash") for one in (run, base)]
    laid_out = [None if series is None else float(series.value[0]) for series in inputs]
    return (None if laid_out[0] != laid_out[1] else False) if mine == theirs else True


def initial_weights_differ(run: Run, base: Run) -> bool:
    """Tell whether both say with which weights they began, and these are not the same.

    Tensors that only one of them has (a new head), and tensors that are frozen in only one, make no difference.
    """
    mine, theirs = _first_bytes(run), _first_bytes(base)
    if mine and theirs:
        common = (mine & theirs).total()
        return common < min(mine.total(), theirs.total())
    hashes = [one.config.get("smoke.model.initial_hash") for one in (run, base)]
    return None not in hashes and hashes[0] != hashes[1]


def _first_bytes(run: Run) -> Counter[tuple[tuple[int, ...], int]]:
    return Counter((p.shape, p.initial) for p in parameters(run) if p.initial is not None)


def positive_steps(series: Series | None) -> list[int]:
    """Return the steps at which a count or a norm is above 0, none where it is absent."""
    return [] if series is None else [int(s) for s in series.step[series.value > 0]]


def _json(run: Run, key: str, kind: type[list[Any]] | type[dict[str, Any]]) -> list[Any]:
    """Return a list as it is and an object as a list of one; empty where the fact is absent or of another kind."""
    text = run.config.get(key)
    if not isinstance(text, str):
        return []
    try:
        found = json.loads(text)
    except ValueError:
        return []
    if not isinstance(found, kind):
        return []
    return found if isinstance(found, list) else [found]
