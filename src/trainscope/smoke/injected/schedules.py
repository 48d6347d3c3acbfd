"""Describes a learning-rate scheduler by its own attributes: what it declares, not where it stands."""

from __future__ import annotations

import collections
import functools
import inspect
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from torch.optim import lr_scheduler

from .sink import Sink

_POSITION = frozenset({"last_epoch", "verbose", "num_bad_epochs", "cooldown_counter", "best", "T_cur", "T_i"})
WARM_UP = ("num_warmup_steps", "warmup_steps", "warmup_iters", "n_warmup_steps")
HORIZON = ("num_training_steps", "total_steps", "max_steps", "max_iters", "lr_decay_iters", "total")


class Schedulers:
    """The schedulers that were made, and which of them have stepped."""

    def __init__(self) -> None:
        self._number: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._stepped: set[int] = set()

    def made(self, scheduler: Any) -> int:
        """Give a scheduler its number."""
        return self._number.setdefault(scheduler, len(self._number))

    def stepped(self, scheduler: Any, sink: Sink) -> None:
        """Note a step; the first one of each scheduler is written down."""
        number = self.made(scheduler)
        if number not in self._stepped:
            self._stepped.add(number)
            sink.write("scheduler", number=number, **describe(scheduler))

    def describe(self) -> list[dict[str, Any]]:
        """Describe all that are alive and no part of another."""
        alive = dict(self._number)
        inner = {id(part) for scheduler in alive for part in getattr(scheduler, "_schedulers", ())}
        return [{"number": number, **describe(s)} for s, number in alive.items() if id(s) not in inner]


def describe(scheduler: Any) -> dict[str, Any]:
    """Return class and scalar options; not where it stands."""
    options: dict[str, Any] = {}
    for name, value in vars(scheduler).items():
        if name.startswith("_") or name in _POSITION:
            continue
        if value is None or isinstance(value, (bool, int, float, str)):
            options[name] = value
        elif isinstance(value, collections.Counter):
            options[name] = sorted(value.elements())
    lengths = zip(("warmup", "horizon"), declared(scheduler), strict=True)
    options |= {name: units for name, units in lengths if units is not None}
    return {"class": type(scheduler).__name__, "options": options}


def declared(scheduler: Any) -> tuple[float | None, float | None]:
    """Return the length of the warm-up and of the whole schedule, in the scheduler's own steps; None if it has none.

    A schedule written as a function says so by the names it was given: arguments of a partial, variables around it.
    """
    kind = lr_scheduler
    if isinstance(scheduler, kind.SequentialLR):
        first, last = scheduler._schedulers[0], scheduler._schedulers[-1]
        start, tail = scheduler._milestones[-1], declared(last)[1]
        return declared(first)[0], None if tail is None else start + tail
    if isinstance(scheduler, kind.OneCycleLR):
        return scheduler._schedule_phases[0]["end_step"], scheduler.total_steps
    if isinstance(scheduler, kind.LinearLR):
        rises = scheduler.start_factor < scheduler.end_factor
        return (scheduler.total_iters, None) if rises else (None, scheduler.total_iters)
    if isinstance(scheduler, kind.CosineAnnealingLR):
        return None, scheduler.T_max
    if isinstance(scheduler, kind.PolynomialLR):
        return None, scheduler.total_iters
    if isinstance(scheduler, kind.LambdaLR):
        return _named(scheduler.lr_lambdas, WARM_UP), _named(scheduler.lr_lambdas, HORIZON)
    return None, None


def _named(functions: list[Callable[..., Any]], names: tuple[str, ...]) -> float | None:
    found = {
        value
        for function in functions
        for name, value in _variables(function)
        if name.lower() in names and isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0
    }
    return float(found.pop()) if len(found) == 1 else None


def _variables(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    if isinstance(function, functools.partial):
        yield from function.keywords.items()
    elif inspect.isfunction(function):
        seen = inspect.getclosurevars(function)
        yield from {**seen.globals, **seen.nonlocals}.items()
