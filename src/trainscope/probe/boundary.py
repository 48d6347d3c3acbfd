"""Keeps faults of the recorder out of the training: one warning a kind of failure, then on.

The only place that catches every ``Exception``. What a user did wrong before training (a bad setting,
attaching twice) does not come through here, nor does anything the training itself raises.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

# Not warnings.warn: under `python -W error` that would raise into the training loop.
_LOG = logging.getLogger("trainscope")


class Boundary:
    """Runs recorder code so that its faults are counted and logged, and never raised."""

    def __init__(self) -> None:
        self.faults: dict[str, int] = {}
        """Kind of failure to how often it happened."""

    def call(self, kind: str, function: Callable[..., T], *args: Any, **kwargs: Any) -> T | None:
        """Return ``function(*args, **kwargs)``, or None after a fault in it."""
        try:
            return function(*args, **kwargs)
        except Exception as error:  # noqa: BLE001  # the boundary itself
            self.note(kind, error)
            return None

    def note(self, kind: str, error: Exception) -> None:
        """Count a fault, and log the first of its kind."""
        kind = f"{kind}: {type(error).__name__}"
        self.faults[kind] = self.faults.get(kind, 0) + 1
        if self.faults[kind] == 1:
            _LOG.warning("recorder fault, training goes on (%s: %s)", kind, error)

    def guard(self, kind: str) -> Callable[[Callable[..., None]], Hook]:
        """Return a decorator for hooks: what they raise stays here."""
        return lambda hook: Hook(self, kind, hook)


class Hook:
    """A hook whose faults go to a boundary.

    It hangs on the user's modules, which may be copied (an average of the weights) or pickled whole: the
    copy gets a method of the standard library that does nothing, and needs nothing of ours.
    """

    __slots__ = ("_boundary", "_hook", "_kind")

    def __init__(self, boundary: Boundary, kind: str, hook: Callable[..., None]) -> None:
        self._boundary, self._kind, self._hook = boundary, kind, hook

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Call the hook."""
        try:
            self._hook(*args, **kwargs)
        except Exception as error:  # noqa: BLE001  # the boundary itself
            self._boundary.note(self._kind, error)

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (contextlib.nullcontext(), "__exit__")
