"""Numbers the batches that training takes from its loaders, describes them, and says which a replay leaves out.

A batch's number is its position: how many batches its loader has given to training before it, over the whole run and
all epochs, dropped ones included. A loader that is made anew when the one before is through goes on counting.
"""

from __future__ import annotations

import json
import sys
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...probe import batch_statistics
from . import hashing

_KEY, _NUMBER, _HELD = "_trainscope_signature", "_trainscope_number", "_trainscope_held"
_AHEAD = "accelerate.data_loader"
"""Fetches a batch before it hands out the one before: training gets each one fetch later."""
_SKIPPING = "trainscope.replay.loader"
"""Leaves batches out where their indices are drawn: they are never fetched, and count all the same."""
_DISPATCHER = "_fetch_batches"
"""Its function that fetches for all processes."""


@dataclass(slots=True, eq=False)
class Taken:
    """A batch on its way to training."""

    hash: int
    order: int | None
    """Hash of the indices that the sampler asked for."""
    row: list[Any]
    """Loader, position, and the statistics of :class:`~trainscope.probe.batch_statistics.Statistic`."""
    dropped: bool


@dataclass(slots=True, eq=False)
class Loader:
    """A loader as training knows it, whichever objects stand for it from epoch to epoch."""

    dataset: int
    """``id`` of its data set."""
    signature: str
    given: int = 0
    """Batches so far."""
    open: weakref.ref[Any] | None = None
    """The iterator that is not through yet."""

    def is_free(self) -> bool:
        """Tell whether no iterator of it is still being read."""
        return self.open is None or self.open() is None


class Batches:
    """Counts what training takes, loader by loader.

    Parameters
    ----------
    loader : int
        Which loader `drop` is about, in the order in which training first reads them.
    drop : sequence of int
        Positions that the script never gets to see.
    """

    def __init__(self, loader: int = 0, drop: Sequence[int] = ()) -> None:
        self._loader, self._drop = loader, frozenset(drop)
        self._loaders: list[Loader] = []

    @property
    def seen(self) -> bool:
        """Whether training has read a loader."""
        return bool(self._loaders)

    def take(self, iterator: Any, batch: object, order: int | None) -> Taken:
        """Count and describe a batch that training asked for."""
        number = getattr(iterator, _NUMBER, None)
        if number is None:
            number = self._number(iterator)
            setattr(iterator, _NUMBER, number)
        loader = self._loaders[number]
        position = _kept(iterator, loader.given)
        loader.given = position + 1
        loader.open = weakref.ref(iterator)
        dropped = number == self._loader and position in self._drop
        return Taken(hashing.of_batch(batch), order, [number, position, *_statistics(batch)], dropped)

    def ended(self, iterator: Any) -> None:
        """Note that an iterator is through."""
        number = getattr(iterator, _NUMBER, None)
        if number is not None:
            self._loaders[number].open = None

    def _number(self, iterator: Any) -> int:
        dataset, signature = getattr(iterator, _KEY, (0, ""))
        alike = [n for n, known in enumerate(self._loaders) if known.signature == signature]
        for number in alike:
            if self._loaders[number].dataset == dataset:
                return number
        for number in alike:
            if self._loaders[number].is_free():
                self._loaders[number].dataset = dataset
                return number
        self._loaders.append(Loader(dataset, signature))
        return len(self._loaders) - 1


def _kept(iterator: Any, counted: int) -> int:
    """Return the position of the batch just fetched: a script that skips batches already says which are left."""
    sampler: Any = getattr(iterator, "_index_sampler", None)
    if type(sampler).__module__ != _SKIPPING:
        return counted
    at = int(iterator._num_yielded) - 1
    return int(sampler.positions[at]) if 0 <= at < len(sampler.positions) else counted


def unskipped(loader: Any) -> Any:
    """Return what says how many batches a loader has in all: those that a script leaves out differ between epochs."""
    sampler: Any = getattr(loader, "_index_sampler", None)
    return sampler.sampler if type(sampler).__module__ == _SKIPPING else loader


def remember(iterator: Any, loader: Any, description: dict[str, Any]) -> None:
    """Note which loader an iterator is of: its data set and what decides its batches."""
    signature = f"{type(loader.dataset).__name__} {json.dumps(description)}"
    setattr(iterator, _KEY, (id(loader.dataset), signature))


def by_script(depth: int) -> Any | None:
    """Return what leaves batches out inside the script, where that is who asked for one.

    Parameters
    ----------
    depth : int
        Frames between this function and whoever asked for the batch.
    """
    caller = sys._getframe(depth)
    if caller.f_globals.get("__name__") != _SKIPPING or "length" not in caller.f_locals:
        return None  # one that leaves them out where their indices are drawn has none to drop
    return caller.f_locals.get("self")


def arrived(iterator: Any, taken: Taken | None, depth: int) -> list[Taken]:
    """Return the batches that training gets now: those before, where a wrapper fetches ahead.

    Parameters
    ----------
    taken : Taken, optional
        The batch just fetched; None at the end of the loader.
    depth : int
        Frames between this function and whoever asked for the batch.
    """
    caller = sys._getframe(depth)
    held: list[Taken] = getattr(iterator, _HELD, [])
    if not str(caller.f_globals.get("__name__", "")).startswith(_AHEAD):
        setattr(iterator, _HELD, [])
        return held if taken is None else [taken]
    # A dispatcher fetches one batch for each process before it hands any of them out.
    if caller.f_code.co_name == _DISPATCHER and caller.f_locals.get("batches"):
        setattr(iterator, _HELD, held if taken is None else [*held, taken])
        return []
    setattr(iterator, _HELD, [] if taken is None else [taken])
    return held


def of_inputs(inputs: object) -> list[Any]:
    """Describe what the model was given, for a script without a loader; its position is filled in later."""
    return [None, None, *_statistics(inputs)]


def _statistics(batch: object) -> list[float]:
    found = batch_statistics.describe(batch)
    return [] if found is None else found.cpu().tolist()
