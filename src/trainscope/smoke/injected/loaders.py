"""Sees what data loaders give, and in which order their samplers asked for it."""

from __future__ import annotations

import collections
import functools
import json
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import BatchSampler, IterableDataset, RandomSampler, dataloader

from . import batches, hashing
from .patches import replace
from .recorder import Recorder

Function = Callable[..., Any]
_ASKED, _LOADER = "_trainscope_asked", "_trainscope_loader"


def install(recorder: Recorder) -> None:
    """Listen to every data loader of the training process; its workers are left alone."""
    base = dataloader._BaseDataLoaderIter
    opened = recorder.guard.hook("loader", functools.partial(_opened, recorder))
    asked = recorder.guard.hook("sampler", functools.partial(_asked, recorder))
    given = recorder.guard.hook("batch", functools.partial(_given, recorder))
    ended = recorder.guard.hook("batch", functools.partial(_ended, recorder))

    def construct(original: Function) -> Function:
        def __init__(self: Any, loader: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            opened(self, loader)  # first: a loader with workers asks for batches while it is being made
            original(self, loader, *args, **kwargs)

        return __init__

    def ask(original: Function) -> Function:
        def _next_index(self: Any, *args: Any, **kwargs: Any) -> Any:
            index = original(self, *args, **kwargs)
            asked(self, index)
            return index

        return _next_index

    def give(original: Function) -> Function:
        def __next__(self: Any) -> Any:  # noqa: N807
            while True:
                try:
                    batch = original(self)
                except StopIteration:
                    ended(self)
                    raise
                if not given(self, batch):  # one that a replay leaves out is drawn like any other
                    return batch

        return __next__

    replace(base, "__init__", construct)
    replace(base, "_next_index", ask)
    replace(base, "__next__", give)


def _opened(recorder: Recorder, iterator: Any, loader: Any) -> None:
    description = describe(loader)
    setattr(iterator, _LOADER, recorder.loaders.opened(loader, json.dumps(description)))
    batches.remember(iterator, loader, description)
    recorder.workers.opened(iterator, loader.num_workers)
    if not isinstance(loader.dataset, IterableDataset):
        setattr(iterator, _ASKED, collections.deque())


def _asked(recorder: Recorder, iterator: Any, index: Any) -> None:
    waiting = getattr(iterator, _ASKED, None)
    if waiting is not None:
        waiting.append((hashing.of_batch(index), index))
        recorder.loaders.asked(getattr(iterator, _LOADER, 0), index)


def _given(recorder: Recorder, iterator: Any, batch: Any) -> bool:
    """Note a batch; tell whether the script is not to have it."""
    waiting = getattr(iterator, _ASKED, None)
    order, index = waiting.popleft() if waiting else (None, None)
    # Fetched without gradient: an evaluation, which is not part of the training's order.
    if not recorder.wakes() or not torch.is_grad_enabled():
        return False
    recorder.setting.draws.begin(anew=True)
    taken = recorder.batches.take(iterator, batch, order)
    position, skipping = taken.row[1], batches.by_script(depth=4)
    if taken.dropped:
        recorder.sink.write("dropped", position=position, hash=taken.hash)
        if skipping is None:
            return True
        skipping.skip_batches |= {position}  # it counts what it is given, so it has to drop it itself
    if skipping is not None and position in skipping.skip_batches:
        return False
    # Frames: this function, the guard, the wrapper, and whoever asked for the batch.
    for one in batches.arrived(iterator, taken, depth=4):
        recorder.window.add(one)
    number = getattr(iterator, _LOADER, 0)
    recorder.window.given.append(recorder.loaders.given(number, batch))
    recorder.loaders.samples.see(number, index, batch)
    return False


def _ended(recorder: Recorder, iterator: Any) -> None:
    """Note that a loader is through, and its last batch where a wrapper had fetched ahead."""
    if recorder.wakes():
        recorder.batches.ended(iterator)
        for one in batches.arrived(iterator, None, depth=4):
            recorder.window.add(one)


def describe(loader: Any) -> dict[str, Any]:
    """Return what decides the batches of a loader."""
    return {
        "samples": _samples(loader),
        "batch_size": loader.batch_size,
        "sampler": type(loader.sampler).__name__,
        "workers": loader.num_workers,
        "batches": _length(batches.unskipped(loader)),
        "drop_last": loader.drop_last,
    }


def _samples(loader: Any) -> int | None:
    """Return how many samples a loader draws from, whoever puts them into batches and however many make an epoch."""
    sampler = loader.sampler
    for batched in (loader.batch_sampler, sampler):
        if isinstance(batched, BatchSampler):
            sampler = getattr(batched, "sampler", sampler)
    if isinstance(sampler, RandomSampler):
        return _length(sampler.data_source)
    if getattr(sampler, "replacement", False):
        return _length(loader.dataset)
    return _length(sampler)


def _length(sized: Any) -> int | None:
    try:
        return len(sized)
    except TypeError:
        return None
