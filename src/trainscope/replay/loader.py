"""Leaves batches out of a data loader: the one thing a training script needs from a replay plan."""

from __future__ import annotations

import copy
import operator
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any, TypeGuard

from torch.utils.data import DataLoader, IterableDataset


class SkippingDataLoader:
    """A loader without some of its batches; everything else is the loader's own.

    A batch is named by its position: how many batches the loader gave before it, counted over the whole run and all
    epochs, skipped ones included. Every rank counts its own loader, so one list is right for all ranks.

    A ``torch.utils.data.DataLoader`` over a map-style data set leaves the batches out where their indices are drawn:
    they are never loaded. Any other loader is read and the batches are dropped. Either way the sampler draws what it
    would have drawn, so the other batches hold the same samples in the same order. Random augmentation is the same
    only where batches are read and dropped (``load=True``).

    Parameters
    ----------
    loader : iterable
        Anything that gives batches: a DataLoader with any sampler and workers, a loader that Accelerate or the
        Hugging Face Trainer has prepared, a generator.
    skip_batches : iterable of int
        Positions to leave out.
    start : int
        Position of the first batch wanted, when training goes on from a checkpoint.
    seek : bool
        Whether to wind the loader forward to `start`: a loader that begins its epoch anew needs it, one that has been
        put back to where it was (a state was loaded into it) must not.
    load : bool
        Load skipped batches too and drop them.

    Raises
    ------
    TypeError
        If a position or `start` is no whole number.
    ValueError
        If a position or `start` is negative.

    Examples
    --------
    ::

        with open("replay_config.json") as file:
            config = json.load(file)
        loader = SkippingDataLoader(loader, skip_batches=config["skip_batches"])
    """

    def __init__(
        self,
        loader: Iterable[Any],
        skip_batches: Iterable[int],
        start: int = 0,
        *,
        seek: bool = True,
        load: bool = False,
    ) -> None:
        self.loader = loader
        # Not int(): of "4521" it would make four batches, and 4 of 4.7.
        self.skip_batches = frozenset(operator.index(position) for position in skip_batches)
        self._position = operator.index(start)
        if start < 0 or min(self.skip_batches, default=0) < 0:
            raise ValueError("positions of batches count from 0")
        self.load = load
        self._done = 0
        """Batches of the epoch that begins next which are behind us."""
        length = _length(loader)
        if start and seek:
            self._done = start % length if length else start
        self._resumes = bool(self._done)
        self._winds = length is None
        """Whether whole epochs may lie between the loader's beginning and `start`: it cannot say how long one is."""
        self._view: _View | None = None

    @property
    def position(self) -> int:
        """Position of the next batch of the loader."""
        return self._position

    def __iter__(self) -> Iterator[Any]:
        """Go through one epoch of the loader."""
        done = self._done if self._resumes else 0
        self._resumes = False
        length = yield from self._epoch(self._position - done, done)
        while self._winds and 0 < length <= done:
            done -= length
            length = yield from self._epoch(self._position - done, done)

    def _epoch(self, first: int, done: int) -> Generator[Any, None, int]:
        """Give what is left of an epoch from a position on, and return how many batches it has in all."""
        self._done = done
        view = None if self.load else self._viewed(first, done)
        if view is not None:
            for number, batch in enumerate(view.loader):
                self._position = view.kept.positions[number] + 1
                self._done = self._position - first
                yield batch
            # What is left out behind the last batch counts too.
            self._position, self._done = max(self._position, first + view.kept.length), 0
            return view.kept.length
        length = 0
        for place, batch in enumerate(self.loader):
            length = place + 1
            if place < done:
                continue
            self._position, self._done = first + length, length
            if first + place not in self.skip_batches:
                yield batch
        self._done = 0
        return length

    def _viewed(self, first: int, done: int) -> _View | None:
        """Return the loader with a sampler that leaves batches out, None where that is not possible."""
        if not _is_plain(self.loader):
            return None
        if self._view is None or not self.loader.persistent_workers:
            self._view = _View(self.loader)
        self._view.kept.begin(first, done, self.skip_batches)
        return self._view

    def __len__(self) -> int:
        """Return how many batches the epoch that goes on, or comes next, gives.

        Raises
        ------
        TypeError
            If the loader does not know its own length.
        """
        length = len(self.loader)  # type: ignore[arg-type]
        first = self._position - self._done
        done = self._done if self._resumes else 0
        span = range(first + done, first + length)
        return len(span) - sum(position in span for position in self.skip_batches)

    def set_epoch(self, epoch: int) -> None:
        """Tell the loader, its samplers and its data set which epoch comes next; positions stay as they are."""
        told = getattr(self.loader, "set_epoch", None)
        if callable(told):  # it tells its own samplers
            told(epoch)
            return
        batches = getattr(self.loader, "batch_sampler", None)
        samplers = [getattr(self.loader, "sampler", None), batches, getattr(batches, "sampler", None)]
        owners = {id(one): one for one in (*samplers, getattr(self.loader, "dataset", None))}
        for one in owners.values():
            told = getattr(one, "set_epoch", None)
            if callable(told):
                told(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return where in the data we are, with the loader's own state where it keeps one."""
        own = getattr(self.loader, "state_dict", None)
        return {
            "position": self._position,
            "in_epoch": self._done,
            "loader": own() if callable(own) else None,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where :meth:`state_dict` was taken.

        A loader with a state of its own is put back by it; any other begins its epoch anew and is wound forward.
        """
        self._position = int(state["position"])
        self._done = int(state["in_epoch"])
        self._winds = False
        load = getattr(self.loader, "load_state_dict", None)
        own = state.get("loader")
        if own is not None and callable(load):
            load(own)
            self._resumes = False
            self._done = 0
        else:
            self._resumes = bool(self._done)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # whatever the loader has
        """Hand out what the loader has: its data set, sampler, batch size."""
        if name == "loader":  # while it is being copied or unpickled
            raise AttributeError(name)
        return getattr(self.loader, name)


class _Kept:
    """A sampler without some of what it gives."""

    def __init__(self, sampler: Iterable[Any]) -> None:
        self.sampler = sampler
        self.begin(0, 0, frozenset())

    def begin(self, first: int, done: int, skip: frozenset[int]) -> None:
        """Set the position at which the coming epoch begins, and how much of it is behind us."""
        self._first, self._after, self._skip = first, done, skip
        self.positions: list[int] = []
        """Of the batches given, grown ahead of them where workers fetch ahead."""
        self.length = 0
        """Batches of the epoch so far, with those left out."""

    def __iter__(self) -> Iterator[Any]:
        for place, indices in enumerate(self.sampler):
            self.length = place + 1
            position = self._first + place
            if place >= self._after and position not in self._skip:
                self.positions.append(position)
                yield indices

    def __len__(self) -> int:
        span = range(self._first + self._after, self._first + len(self.sampler))  # type: ignore[arg-type]
        return len(span) - sum(position in span for position in self._skip)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # whatever the sampler has
        if name == "sampler":
            raise AttributeError(name)
        return getattr(self.sampler, name)


class _View:
    """A DataLoader that shares all with another, except that its sampler leaves batches out."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self.loader = copy.copy(loader)
        name = "batch_sampler" if loader.batch_sampler is not None else "sampler"
        self.kept = _Kept(getattr(loader, name))
        # A DataLoader refuses another sampler after its construction; this copy is our own. So are its workers: those
        # that persist from an earlier use of the loader take their indices from its own sampler.
        vars(self.loader).update({name: self.kept, "_iterator": None})


def _is_plain(loader: object) -> TypeGuard[DataLoader[Any]]:
    """Tell whether a loader takes its batches from a sampler of indices, in torch's own way."""
    # Not isinstance: Accelerate's loaders say that they are what they wrap.
    plain = issubclass(type(loader), DataLoader) and getattr(type(loader), "__iter__", None) is DataLoader.__iter__
    return plain and not isinstance(loader.dataset, IterableDataset)  # type: ignore[attr-defined]


def _length(loader: Iterable[Any]) -> int | None:
    try:
        return len(loader)  # type: ignore[arg-type]
    except TypeError:
        return None
